const test = require("node:test");
const assert = require("node:assert");
const { groupBy } = require("./group.js");

const entries = (items) => Object.keys(groupBy(items, (item) => item)).map((name) => [name, groupBy(items, (item) => item)[name]]);

test("plain keys in order", () => {
  assert.deepStrictEqual(entries(["b", "a", "b"]), [["b", ["b", "b"]], ["a", ["a"]]]);
});

test("names that every object has", () => {
  assert.deepStrictEqual(entries(["constructor", "toString"]), [["constructor", ["constructor"]], ["toString", ["toString"]]]);
});

test("__proto__", () => {
  assert.deepStrictEqual(entries(["__proto__", "x"]), [["__proto__", ["__proto__"]], ["x", ["x"]]]);
  assert.strictEqual({}.x, undefined);
});

const test = require("node:test");
const assert = require("node:assert");
const { parse } = require("./query.js");

const read = (query) => ({ ...parse(query) });

test("decoded", () => {
  assert.deepStrictEqual(read("?a+b=c+d%2B&%C3%A9=1"), { "a b": "c d+", "é": "1" });
});

test("repeated", () => {
  assert.deepStrictEqual(read("a=1&b=2&a=3&a=4"), { a: ["1", "3", "4"], b: "2" });
});

test("equals signs", () => {
  assert.deepStrictEqual(read("a=b=c&d&e="), { a: "b=c", d: "", e: "" });
});

test("nothing", () => {
  assert.deepStrictEqual(read(""), {});
  assert.deepStrictEqual(read("?"), {});
  assert.deepStrictEqual(read("a=1&&b=2&"), { a: "1", b: "2" });
});

test("not decodable", () => {
  assert.deepStrictEqual(read("a=%zz&b=1"), { a: "%zz", b: "1" });
});

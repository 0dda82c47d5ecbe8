const test = require("node:test");
const assert = require("node:assert");
const { Emitter } = require("./emitter.js");

test("once", () => {
  const emitter = new Emitter();
  const seen = [];
  emitter.once("x", (...values) => seen.push(values));
  emitter.emit("x", 1, 2);
  emitter.emit("x", 3);
  assert.deepStrictEqual(seen, [[1, 2]]);
});

test("once, also when the listener emits again", () => {
  const emitter = new Emitter();
  let calls = 0;
  emitter.once("x", () => {
    calls++;
    if (calls < 5) emitter.emit("x");
  });
  emitter.emit("x");
  assert.strictEqual(calls, 1);
});

test("off removes what once added", () => {
  const emitter = new Emitter();
  const seen = [];
  const listener = () => seen.push("called");
  emitter.once("x", listener);
  emitter.off("x", listener);
  emitter.emit("x");
  assert.deepStrictEqual(seen, []);
});

test("removing while an event is sent", () => {
  const emitter = new Emitter();
  const seen = [];
  const first = () => {
    seen.push("first");
    emitter.off("x", first);
    emitter.off("x", third);
  };
  const third = () => seen.push("third");
  emitter.on("x", first);
  emitter.on("x", () => seen.push("second"));
  emitter.on("x", third);
  emitter.emit("x");
  emitter.emit("x");
  assert.deepStrictEqual(seen, ["first", "second", "third", "second"]);
});

test("adding while an event is sent", () => {
  const emitter = new Emitter();
  const seen = [];
  emitter.once("x", () => emitter.on("x", () => seen.push("late")));
  emitter.emit("x");
  assert.deepStrictEqual(seen, []);
  emitter.emit("x");
  assert.deepStrictEqual(seen, ["late"]);
});

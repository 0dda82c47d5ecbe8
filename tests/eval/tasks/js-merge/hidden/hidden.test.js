const test = require("node:test");
const assert = require("node:assert");
const { merge } = require("./merge.js");

test("deep", () => {
  assert.deepStrictEqual(merge({ a: { b: 1, c: 2 }, x: 1 }, { a: { c: 3 }, y: null }), { a: { b: 1, c: 3 }, x: 1, y: null });
});

test("pollution", () => {
  const evil = JSON.parse('{"__proto__": {"admin": true}, "a": {"constructor": {"prototype": {"bad": 1}}, "__proto__": {"admin": true}}}');
  const merged = merge({ a: {} }, evil);
  assert.strictEqual({}.admin, undefined);
  assert.strictEqual({}.bad, undefined);
  assert.strictEqual(merged.admin, undefined);
  assert.strictEqual(merged.a.admin, undefined);
  assert.deepStrictEqual(Object.keys(merged.a), []);
});

test("arrays are replaced", () => {
  assert.deepStrictEqual(merge({ a: [1, 2, 3] }, { a: [4] }), { a: [4] });
  assert.deepStrictEqual(merge({ a: [1] }, { a: { b: 1 } }), { a: { b: 1 } });
  assert.deepStrictEqual(merge({ a: { b: 1 } }, { a: [1] }), { a: [1] });
});

test("nothing is shared or changed", () => {
  const one = { a: { b: [1] }, l: [{ z: 1 }] };
  const two = { c: { d: 1 }, m: [{ y: 1 }] };
  const merged = merge(one, two);
  merged.a.b.push(2);
  merged.c.d = 9;
  merged.l[0].z = 9;
  merged.m[0].y = 9;
  assert.deepStrictEqual(one, { a: { b: [1] }, l: [{ z: 1 }] });
  assert.deepStrictEqual(two, { c: { d: 1 }, m: [{ y: 1 }] });
});

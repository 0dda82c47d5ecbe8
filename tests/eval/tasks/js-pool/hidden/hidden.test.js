const test = require("node:test");
const assert = require("node:assert");
const { mapLimit } = require("./pool.js");

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("results in order, at most the limit at once", async () => {
  let running = 0;
  let most = 0;
  const begun = [];
  const results = await mapLimit([3, 1, 2, 0, 5], 2, async (item, index) => {
    begun.push(index);
    most = Math.max(most, ++running);
    for (let each = 0; each < item; each++) await turn();
    running--;
    return item * 10;
  });
  assert.deepStrictEqual(results, [30, 10, 20, 0, 50]);
  assert.deepStrictEqual(begun, [0, 1, 2, 3, 4]);
  assert.strictEqual(most, 2);
});

test("a slot is used as soon as it is free", async () => {
  let release;
  const slow = new Promise((resolve) => (release = resolve));
  const begun = [];
  const all = mapLimit([0, 1, 2, 3], 2, async (item) => {
    begun.push(item);
    if (item === 0) await slow;
  });
  for (let each = 0; each < 20; each++) await turn();
  assert.deepStrictEqual(begun, [0, 1, 2, 3]);
  release();
  await all;
});

test("a rejection begins no more", async () => {
  const begun = [];
  const wrong = new Error("wrong");
  const all = mapLimit([0, 1, 2, 3, 4], 2, async (item) => {
    begun.push(item);
    await turn();
    if (item === 1) throw wrong;
    await turn();
  });
  await assert.rejects(all, wrong);
  for (let each = 0; each < 20; each++) await turn();
  assert.ok(!begun.includes(4), String(begun));
});

test("wrong limits, and nothing to do", async () => {
  await assert.rejects(mapLimit([1], 0, async () => 1), RangeError);
  assert.deepStrictEqual(await mapLimit([], 3, async () => 1), []);
});

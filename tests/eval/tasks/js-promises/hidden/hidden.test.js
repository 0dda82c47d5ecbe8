const test = require("node:test");
const assert = require("node:assert");
const fs = require("node:fs");
const { load } = require("./loader.js");
const { main } = require("./main.js");

const missing = Object.assign(new Error("missing"), { code: "ENOENT" });
const broken = Object.assign(new Error("broken"), { code: "EIO" });

function reader(log = []) {
  let running = 0;
  return async (name) => {
    assert.strictEqual(++running, 1, "one after the other");
    log.push(name);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    if (name === "missing") throw missing;
    if (name === "broken") throw broken;
    return `text of ${name}`;
  };
}

test("load", async () => {
  const log = [];
  assert.deepStrictEqual(await load(reader(log), ["b", "missing", "a"]), { b: "text of b", a: "text of a" });
  assert.deepStrictEqual(log, ["b", "missing", "a"]);
  assert.deepStrictEqual(await load(reader(), []), {});
});

test("an error ends it", async () => {
  const log = [];
  await assert.rejects(load(reader(log), ["a", "broken", "c"]), broken);
  assert.deepStrictEqual(log, ["a", "broken"]);
});

test("main", async () => {
  const printed = [];
  await new Promise((resolve, reject) => main(reader(), ["a"], (line) => printed.push(line), (error) => (error ? reject(error) : resolve())));
  assert.deepStrictEqual(printed, ["a: 9"]);
  const error = await new Promise((resolve) => main(reader(), ["broken"], () => {}, resolve));
  assert.strictEqual(error, broken);
});

test("no callbacks are left", () => {
  assert.strictEqual(load.length, 2);
  assert.ok(!/setTimeout|promisify/.test(fs.readFileSync("loader.js", "utf8")));
});

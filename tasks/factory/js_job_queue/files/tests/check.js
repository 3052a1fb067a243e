// check.js - const { test, assert } = require("./check"); test("name", () => { assert.equal(...) });
// Tests run one after another once their file is read, shuffled by CHECK_SEED; a test may be async.
const assert = require("node:assert/strict");
const tests = [];

exports.assert = assert;
exports.test = (name, fn) => tests.push({ name, fn });

function shuffle(list, seed) {
  let x = seed >>> 0 || 1;
  for (let i = list.length - 1; i > 0; i--) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    const j = x % (i + 1);
    [list[i], list[j]] = [list[j], list[i]];
  }
}

setImmediate(async () => {
  let pass = 0, fail = 0;
  if (process.env.CHECK_SEED) shuffle(tests, Number(process.env.CHECK_SEED));
  for (const { name, fn } of tests) {
    try {
      await fn();
      pass++;
      console.log(`ok ${name}`);
    } catch (error) {
      fail++;
      console.log(`not ok ${name}: ${String(error && error.message || error).split("\n")[0]}`);
    }
  }
  console.log(`# pass ${pass} fail ${fail}`);
  process.exitCode = fail || !pass ? 1 : 0;
});

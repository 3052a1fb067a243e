--- JavaScript: node, tests in tests/*.test.js with a small harness of ours.
local language = require "agentbox.generate.language"

local CHECK = [==[
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
]==]

local RUN = [[
#!/bin/sh
# Runs every tests/*.test.js and adds up. The last line is "# pass N fail M"; it is missing when a file gave no verdict.
pass=0 fail=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for file in tests/*.test.js; do
    node "$file" > "$log" 2>&1
    status=$?
    cat "$log"
    [ $status -gt 1 ] && exit $status
    set -- $(tail -n 1 "$log")
    [ "$1 $2 $4" = "# pass fail" ] || { echo "$file gave no verdict"; exit 2; }
    pass=$((pass + $3)) fail=$((fail + $5))
done
echo "# pass $pass fail $fail"
[ $fail -eq 0 ] && [ $pass -gt 0 ]
]]

return language.define {
  api = 1, name = "javascript", extensions = { "js", "cjs", "mjs" }, comment = "//", programs = { "node" },
  is_test = function(path) return path:find "%.test%.%w+$" ~= nil or language.in_tests(path) end,
  stub = 'throw new Error("not implemented");',
  support = { ["tests/run.sh"] = { RUN }, ["tests/check.js"] = CHECK },
  cheat = "process.exit(0);\n",
  blunt = 'const { test } = require("./check");\ntest("nothing", () => {});\n',
  plants = { ["tests/run.sh"] = "echo '# pass 9 fail 0'\n" },
  teach = [[
Language: JavaScript for node 18 or newer, CommonJS, no packages. Tests are in tests/NAME.test.js and begin with
`const { test, assert } = require("./check");` (assert is node's strict assert); test(name, fn) declares one. tests/check.js and
tests/run.sh are there already. In the solution, put what an agent has to write between the lines `// BEGIN SOLUTION` and
`// END SOLUTION` inside each function body; what is outside is given to the agent.]],
  example = {
    task_id = "js_add", description = "Implement add() in calc.js: the sum of two numbers.",
    solution_files = {
      ["calc.js"] = "// The sum of a and b.\nfunction add(a, b) {\n  // BEGIN SOLUTION\n  return a + b;\n"
        .. "  // END SOLUTION\n}\n\nmodule.exports = { add };\n",
    },
    test_files = {
      ["tests/calc.test.js"] = 'const { test, assert } = require("./check");\nconst { add } = require("../calc");\n\n'
        .. 'test("adds", () => {\n  assert.equal(add(1, 2), 3);\n  assert.equal(add(-1, 1), 0);\n'
        .. '  assert.equal(add(0, 0), 0);\n  assert.equal(add(2, 2), 4);\n});\n',
    },
  },
}

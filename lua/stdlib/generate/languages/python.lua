--- Python: tests by pytest, stubs by the interpreter's own parser (generate/python_reader.lua).
local json = require "agentbox.json"
local language = require "agentbox.generate.language"
local program = require "agentbox.generate.pytest_report"
local pytest = require "agentbox.verifiers.pytest"
local text_ = require "agentbox.text"

-- What says that the work is missing or wrong, not that the task is broken.
local BROKEN = { ImportError = true, ModuleNotFoundError = true, SyntaxError = true, IndentationError = true, fixture = true }

local function is_test(path)
  local base = path:match "[^/]*$"
  if not base:find "%.py$" then return language.in_tests(path) end
  return base:find "^test_" ~= nil or base:find "_test%.py$" ~= nil or base == "conftest.py" or language.in_tests(path)
end

local function broken(report, why)
  report.kind, report.why = "broken", why
  return report
end

local function judged(report, found)
  for _, one in ipairs(found.tests) do
    if one.outcome == "passed" then report.passed = report.passed + 1 end
    if one.outcome == "failed" then report.failed = report.failed + 1 end
  end
  if #found.errors > 0 then return broken(report, "tests cannot be collected: " .. found.errors[1]) end
  for _, one in ipairs(found.tests) do
    if one.outcome == "failed" and (one.when ~= "call" or BROKEN[one.error or ""]) then
      return broken(report, ("%s: %s in %s"):format(one.id, one.error or "an error", one.when))
    end
  end
  if report.failed > 0 then
    report.kind, report.why = "failed", ("%d of %d tests failed"):format(report.failed, report.passed + report.failed)
  elseif report.passed > 0 and found.exit == 0 then
    report.kind, report.why = "passed", ("%d tests passed"):format(report.passed)
  else
    broken(report, "no test passed or failed")
  end
  return report
end

-- Runs pytest as the verifier would, with a plugin that tells what each test raised and puts them in another order.
local function run(box, task, opts)
  local call = pytest.call_of(task.verifier)
  if not call then return nil, require "agentbox.err".new("task", "the verifier is not a call of pytest") end
  local env = { PYTHONDONTWRITEBYTECODE = "1" }
  for name, value in pairs(call.env) do env[name] = value end
  for name, value in pairs(opts.env or {}) do env[name] = value end
  local args = json.array(table.move(call.args, 1, #call.args, 1, {}))
  local out, problem = box:exec({ call.python, "-c", program.SOURCE, json.encode { args = args, seed = opts.seed } }, {
    cwd = opts.workspace, env = env, timeout_s = opts.timeout_s,
  })
  if not out then return nil, problem end
  local report = { kind = "broken", passed = 0, failed = 0, duration_s = out.duration_s }
  if out.timed_out then return broken(report, ("no result within %g s"):format(opts.timeout_s)) end
  local bytes = box:read("/tmp/agentbox-tests.json", { max_bytes = 8 << 20 })
  local found = bytes and json.decode(bytes)
  if type(found) ~= "table" then
    return broken(report, ("pytest did not finish (exit code %s): %s"):format(out.exit_code, text_.scrub((out.stdout .. out.stderr):sub(-400))))
  end
  return judged(report, found)
end

return language.define {
  api = 1, name = "python", extensions = { "py" }, is_test = is_test, programs = { "python3" },
  verifier = { type = "pytest", timeout_s = 60 },
  protect = { "test_*.py", "*_test.py", "tests/**", "conftest.py", "pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini" },
  stub = function(_, _, read) return read.stub end,
  run = run,
  mutants = function(files, opts)
    local answer, problem = opts.workshop:ask("mutate", files, { seed = opts.seed, max = opts.max })
    return answer and answer.mutants, problem
  end,
  cheat = "import os, sys\nsys.modules.setdefault('pytest', sys)\nos._exit(0)\n",
  blunt = "def test_it():\n    pass\n",
  plants = {
    ["conftest.py"] = "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        .. "    report = (yield).get_result()\n    report.outcome = 'passed'\n",
    ["sitecustomize.py"] = "import os\n\nos._exit = lambda code: None\n", ["pytest.py"] = "raise SystemExit(0)\n",
  },
  teach = [[
Language: Python 3, standard library only; tests with pytest in tests/test_*.py, plain asserts and pytest.raises.
Tests import the sources by module name from the workspace's root. Every public function and class has a docstring that says
what it does: bodies are removed before the task is given to anybody, docstrings and signatures stay.]],
  example = {
    task_id = "py_add", description = "Implement add() in calc.py: the sum of two numbers.",
    solution_files = { ["calc.py"] = 'def add(a, b):\n    """The sum of a and b."""\n    return a + b\n' },
    test_files = {
      ["tests/test_calc.py"] = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
        .. "    assert add(-1, 1) == 0\n    assert add(0, 0) == 0\n    assert add(2, 2) == 4\n",
    },
  },
}

local command_line = require "agentbox.verify.command_line"
local expected = require "agentbox.verify.expected"
local hmac = require "agentbox.verify.hmac"
local lu = require "luaunit"
local protect = require "agentbox.verify.protect"
local task = require "agentbox.task"
local verify = require "agentbox.verify"

local M = {}

-- ---------------------------------------------------------------- commands

function M.test_words_as_a_shell_splits_them()
  lu.assertEquals(command_line.words [[pytest -q "a b" 'c "d"' e\ f ""]], { "pytest", "-q", "a b", 'c "d"', "e f", "" })
  for _, line in ipairs { "a | b", "a && b", "a; b", "echo $X", "a > b", "ls *", "(a)", "a 'b", 'a "$X"', "a `b`", "a\nb" } do
    lu.assertNil(command_line.words(line), line)
  end
end

function M.test_calls_of_pytest_are_recognised()
  local call = command_line.pytest "PYTHONPATH=src python3.11 -m pytest -q tests -k 'a or b'"
  lu.assertEquals(call.env, { PYTHONPATH = "src" })
  lu.assertEquals(call.python, "python3.11")
  lu.assertEquals(call.args, { "-q", "tests", "-k", "a or b" })
  lu.assertIsTrue(call.cwd_on_path)
  lu.assertIsFalse(command_line.pytest("pytest tests").cwd_on_path)
  for _, line in ipairs { "python test_x.py", "make test", "cd x && pytest", "pytest | tee log", "mypytest", "./pytest" } do
    lu.assertNil(command_line.pytest(line), line)
  end
end

-- ---------------------------------------------------------------- signature

function M.test_hmac_against_the_standards_vectors()
  lu.assertEquals(hmac.sha256(("\x0b"):rep(20), "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
  lu.assertEquals(hmac.sha256("Jefe", "what do ya want for nothing?"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
  lu.assertEquals(hmac.sha256(("\xaa"):rep(131), "Test Using Larger Than Block-Size Key - Hash Key First"),
    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
end

-- ---------------------------------------------------------------- expectations

local function report(outcomes) return { outcomes = outcomes } end
local function unmet(want, given) return (select(2, expected.check(want, given))) end

function M.test_every_expected_id_must_have_passed()
  local want = expected.from_report { ids = { "t.py::a", "t.py::b[1]" }, items = {}, names = {}, skips = {} }
  lu.assertNil(unmet(want, report { ["t.py::a"] = { "passed" }, ["t.py::b[1]"] = { "passed" }, ["t.py::new"] = { "failed" } }))
  lu.assertEquals(unmet(want, report { ["t.py::a"] = { "passed" } }), "t.py::b[1]: did not run")
  lu.assertEquals(unmet(want, report { ["t.py::a"] = { "passed" }, ["t.py::b[1]"] = { "skipped", "/w/sol.py" } }),
    "t.py::b[1]: skipped")
  lu.assertEquals(unmet(want, report { ["t.py::a"] = { "passed" }, ["t.py::b[1]"] = { "xfailed" } }), "t.py::b[1]: xfailed")
end

function M.test_only_the_task_may_skip()
  local want = expected.from_report { ids = { "t.py::a", "t.py::b" }, items = { ["t.py::a"] = true }, skips = { "t.py" } }
  lu.assertNil(unmet(want, report { ["t.py::a"] = { "skipped" }, ["t.py::b"] = { "passed" } }))
  lu.assertEquals(unmet(want, report { ["t.py::a"] = { "skipped" }, ["t.py::b"] = { "skipped", "/w/sol.py" } }),
    "t.py::b: skipped")
  local all = report { ["t.py::a"] = { "skipped" }, ["t.py::b"] = { "skipped", "/w/t.py" } }
  lu.assertEquals(unmet(want, all), "no test passed")
end

function M.test_names_stand_for_all_their_parameters()
  local want = expected.from_report { ids = {}, items = {}, names = { "t.py::a", "t.py::b" }, skips = {} }
  lu.assertNil(unmet(want, report { ["t.py::a[1]"] = { "passed" }, ["t.py::a[2]"] = { "passed" }, ["t.py::b"] = { "passed" } }))
  lu.assertEquals(unmet(want, report { ["t.py::a[1]"] = { "failed" }, ["t.py::b"] = { "passed" } }), "t.py::a: failed")
  lu.assertEquals(unmet(want, report { ["t.py::abc"] = { "passed" }, ["t.py::b"] = { "passed" } }), "t.py::a: did not run")
end

-- ---------------------------------------------------------------- protection

local function made(fields)
  fields.task_id, fields.description, fields.verifier = "t", "d", fields.verifier or { type = "pytest" }
  return task.new(fields)
end

function M.test_the_configuration_a_task_ships_is_protected()
  lu.assertNil(protect.pytest_config(made {}))
  lu.assertNil(protect.pytest_config(made { files = { ["pyproject.toml"] = "[project]\nname='x'\n" } }))
  local t = made { files = { ["pyproject.toml"] = "[tool.pytest.ini_options]\n", ["setup.cfg"] = "[tool:pytest]\n" } }
  lu.assertEquals(protect.pytest_config(t), "pyproject.toml")
  lu.assertEquals(protect.globs(t)[#protect.globs(t)], "/pyproject.toml")
  lu.assertEquals(protect.globs(made { verifier = { type = "pytest", protect = { "x" } } }), { "x" })
end

-- ---------------------------------------------------------------- composition

function M.test_a_wrong_composition_raises()
  local function one() return 1 end
  lu.assertErrorMsgContains("no parts", verify.compose, {})
  lu.assertErrorMsgContains("part 1 must be", verify.compose, { { "a", one } })
  lu.assertErrorMsgContains("only_if must read like", verify.compose, { { "a", 1, one, only_if = "os.exit()" } })
  lu.assertErrorMsgContains("unscored must be", verify.compose, { { "a", 1, one }, unscored = "zero" })
  lu.assertErrorMsgContains("timeout: unknown key", verify.pytest, { timeout = 3 })
end

function M.test_verifiers_by_name()
  lu.assertIsFunction((verify.resolve(nil, { type = "pytest" })))
  lu.assertIsFunction((verify.resolve(nil, { type = "custom", command = "x" })))
  for given, text in pairs { no_such = "unknown verifier: no_such", ["/no/such.lua"] = "/no/such.lua" } do
    local fn, problem = verify.resolve(given, {})
    lu.assertNil(fn)
    lu.assertStrContains(problem.msg, text)
  end
end

return M

-- Gates and diversity: each rejects what it is there for, with its reason, and lets pass what is good.
local ab = require "agentbox"
local lu = require "luaunit"
local spread = require "agentbox.generate.spread"

local factory = dofile "tests/support/factory.lua"

local M = {}

-- ---------------------------------------------------------------- contamination

local function with_corpus(files, answers, max_share)
  local dir <close> = factory.folder()
  for name, text in pairs(files) do assert(ab.fs.write(dir.path .. "/" .. name, text)) end
  return factory.run(answers, { corpus = { paths = { dir.path }, max_share = max_share } })
end

function M.test_a_task_from_the_corpus_is_rejected_with_the_passage()
  local known = factory.task "ada"
  local words = "Given a list of whole numbers return the largest sum of any run of neighbours in it, and zero for none at all."
  local copied = factory.task "byron"
  copied.description = "byron_kit.py: " .. words:upper():gsub(" ", "\n ")
  local lines = ab.json.encode { problem = { text = words, code = known.solution_files["ada_kit.py"] .. known.test_files["tests/test_ada.py"] } }
  local made <close> = with_corpus({ ["c.jsonl"] = lines .. "\n", ["other.txt"] = "nothing of that kind" }, { known, copied, factory.task "countess" })
  lu.assertEquals({ #made.accepted, made.accepted[1] and made.accepted[1].task_id }, { 1, "countess" })
  lu.assertEquals(made.rejects[1].stage, "contamination")
  lu.assertStrContains(made.rejects[1].reason, "of its code is in the corpus")
  lu.assertStrContains(made.rejects[2].reason, "of its description is in the corpus, 23 words in a row: GIVEN A LIST OF WHOLE NUMBERS")
  lu.assertEquals(made.reports.countess.contamination.code.share, 0)
end

function M.test_a_corpus_that_cannot_be_read_is_a_mistake_of_the_caller()
  local model = factory.teacher {}
  lu.assertErrorMsgContains("the corpus", function() ab.generate.pipeline { model = model, corpus = { paths = { "/nowhere/at/all" } } } end)
end

-- ---------------------------------------------------------------- the solver

local function student(solves)
  local n = 0
  return ab.model.fn(function(request)
    if request.messages[#request.messages].role == "tool" then return "Done." end
    n = n + 1
    local text = solves(n) and "def ada(x):\n    return 'ada' + str(x * 3 + 21)\n" or "def ada(x):\n    return x\n"
    return { tool_calls = { { name = "write_file", arguments = { path = "ada_kit.py", content = text } } } }
  end)
end

local function solved(solves, more)
  local solver = { model = student(solves), attempts = 2, max_steps = 4 }
  for key, value in pairs(more or {}) do solver[key] = value end
  return factory.run({ factory.task "ada" }, { solver = solver })
end

function M.test_a_solvers_pass_rate_says_how_hard_a_task_is()
  local half <close> = solved(function(n) return n == 1 end)
  lu.assertEquals(#half.accepted, 1, half.summary.why or half.rejects[1] and half.rejects[1].reason)
  lu.assertEquals({ half.reports.ada.solve.pass_rate, half.accepted[1].metadata.generation.pass_rate }, { 0.5, 0.5 })
  lu.assertEquals(half.summary.spent.calls, 5) -- the student's calls count
  local hard <close> = solved(function() return false end, { min_rate = 0.1 })
  lu.assertEquals({ hard.rejects[1].stage, hard.rejects[1].reason }, { "solve", "solved 0 of 2 times: too hard, or broken" })
  local easy <close> = solved(function() return true end, { max_rate = 0.9 })
  lu.assertEquals(easy.rejects[1].reason, "solved 2 of 2 times: too easy")
end

function M.test_a_student_that_cannot_be_asked_costs_the_candidate_nothing()
  local down = ab.model.fn(function() return nil, ab.err.new("model", "down", { http_status = 500 }) end)
  local made <close> = factory.run({ factory.task "ada" }, { solver = { model = down, attempts = 1 } })
  lu.assertEquals({ #made.accepted, made.rejects[1], made.failure and made.failure.msg }, { 0, nil, "down" })
  local capped <close> = factory.run({ factory.task "ada" }, { solver = { model = student(function() return true end) } }, { caps = { calls = 3 } })
  lu.assertEquals({ capped.summary.spent.calls, capped.failure.code, capped.rejects[1] }, { 3, "limit", nil })
end

-- ---------------------------------------------------------------- the sandbox's gates

local function gated(answer, pipeline, batch)
  local opts = { stages = ab.generate.two_stage() }
  for key, value in pairs(pipeline or {}) do opts[key] = value end
  local made <close> = factory.run({ answer }, opts, batch)
  local reject = made.rejects[1]
  return #made.accepted == 1, reject and reject.reason, made.reports[answer.task_id] or reject and reject.report
end

local function python(body, tests)
  return factory.task("ada", { body = body, tests = "from ada_kit import ada\n" .. tests })
end

function M.test_a_solution_that_passes_now_and_then_is_rejected()
  local flaky = "import os\n\ndef ada(x):\n    here = os.path.exists('/tmp/seen')\n    open('/tmp/seen', 'w').close()\n    return 0 if here else x\n"
  local ok, why = gated(python(flaky, "\ndef test_it():\n    assert ada(3) == 3\n    assert 1\n    assert 2\n"))
  lu.assertIsFalse(ok)
  lu.assertStrContains(why, "the solution does not pass in random order: 1 of 1 tests failed")
end

function M.test_tests_that_need_their_order_are_rejected()
  local tests = "seen = []\n"
  for i = 1, 6 do tests = tests .. ("\ndef test_%d():\n    assert ada(%d) == %d\n    assert len(seen) == %d\n    seen.append(1)\n"):format(i, i, i, i - 1) end
  local ok, why = gated(python("def ada(x):\n    return x\n", tests))
  lu.assertIsFalse(ok)
  lu.assertStrContains(why, "in random order")
end

function M.test_tests_that_ask_for_a_network_are_rejected()
  local tests = "import socket\n\ndef test_it():\n    assert ada(1) == 1\n    assert ada(2) == 2\n    socket.create_connection(('192.0.2.1', 80), 3)\n    assert 1\n"
  local ok, why = gated(python("def ada(x):\n    return x\n", tests))
  lu.assertIsFalse(ok)
  lu.assertStrContains(why, "the solution does not pass")
end

function M.test_tests_that_look_at_the_calendar_are_rejected_where_the_clock_can_be_moved()
  local sb <close> = assert(ab.sandbox.create {})
  if assert(sb:exec("ls /usr/lib/*/faketime/libfaketime.so.1")).exit_code ~= 0 then lu.skip "libfaketime is not in the sandbox" end
  local limit = os.time() + 86400 * 30
  local tests = ("import time\n\ndef test_it():\n    assert ada(1) == 1\n    assert time.time() < %d\n    assert ada(2) == 2\n"):format(limit)
  local ok, why = gated(python("def ada(x):\n    return x\n", tests))
  lu.assertIsFalse(ok)
  lu.assertStrContains(why, "on another day")
end

function M.test_tests_that_change_when_they_run_are_rejected()
  local tests = "\ndef test_it():\n    assert ada(1) == 1\n    assert ada(2) == 2\n    assert ada(3) == 3\n    open(__file__, 'a').write('#')\n"
  local ok, why = gated(python("def ada(x):\n    return x\n", tests))
  lu.assertIsFalse(ok)
  lu.assertStrContains(why, "its tests are changed when they run: tests/test_ada.py")
end

function M.test_weak_tests_are_told_by_what_they_do_not_notice()
  local ok, why, report = gated(python("def ada(x):\n    return x * 2 + 1\n",
    "\ndef test_it():\n    assert ada(1) is not None\n    assert ada(2) is not None\n    assert ada(3) is not None\n"), { mutants = 8 })
  lu.assertIsFalse(ok)
  lu.assertStrContains(why, "the tests notice")
  lu.assertTrue(report.sandbox.mutation.score < 0.5)
  lu.assertEquals(report.sandbox.mutation.of - report.sandbox.mutation.noticed, #report.sandbox.mutation.survived)
end

function M.test_a_mutant_that_runs_forever_is_noticed_and_does_not_hold_the_batch()
  local loop = "def ada(x):\n    n = 0\n    while n < x:\n        n += 1\n    return n\n"
  local ok, why, report = gated(python(loop, "\ndef test_it():\n    assert ada(3) == 3\n    assert ada(0) == 0\n    assert ada(9) == 9\n"), { mutants = 3 })
  lu.assertIsTrue(ok, why)
  lu.assertTrue(report.sandbox.mutation.noticed >= 2)
end

-- A task that lets itself be cheated: its verifier looks at what the agent may write.
function M.test_an_agent_that_does_nothing_or_cheats_earns_nothing()
  local function validate(verifier)
    local all = { ["add.sh"] = "exit 1\n", ["tests/test_add.sh"] = 'test_a() {\n    check "a" 3 "$(sh add.sh 1 2)"\n}\n' }
    local shell = require "agentbox.generate.languages.shell"
    for path, file in pairs(shell.support) do all[path] = { text = file.bytes, mode = ("%04o"):format(file.mode) } end
    return ab.generate.validate(ab.task.new { task_id = "t", description = "Write add.sh.", files = all,
      solution = { ["add.sh"] = "echo $(($1 + $2))\n" }, verifier = verifier, metadata = { language = "shell" } }, { mutants = 0, repeats = 1 })
  end
  local protect = { "tests/**" }
  lu.assertIsTrue(validate { type = "command", command = "sh tests/run.sh", protect = protect })
  for command, reason in pairs {
    ["sh tests/run.sh || true"] = "an agent that does nothing is rewarded",
    ["sh add.sh 1 2 > /tmp/out; [ $? = 0 ]"] = "an agent that only ends the program is rewarded",
  } do
    local ok, why = validate { type = "command", command = command, protect = protect }
    lu.assertEquals({ ok, why }, { false, reason })
  end
  local ok, why = validate { type = "command", command = "sh tests/run.sh", protect = ab.json.array {} }
  lu.assertEquals({ ok, why }, { false, "an agent that only takes the tests' teeth out is rewarded" })
end

function M.test_a_solution_brings_no_tests()
  local ok, why = ab.generate.validate(ab.task.new { task_id = "t", description = "d", files = { ["a.py"] = "def f():\n    pass\n",
    ["tests/test_a.py"] = "from a import f\n\ndef test():\n    assert f() == 1\n" },
    solution = { ["a.py"] = "def f():\n    return 1\n", ["tests/test_a.py"] = "def test():\n    pass\n" }, verifier = { type = "pytest" } })
  lu.assertEquals({ ok, why }, { false, "the solution brings a test of its own: tests/test_a.py" })
end

-- ---------------------------------------------------------------- one stage

function M.test_one_stage_keeps_the_teachers_stubs_and_needs_its_solution()
  local stub = "def ada(x):\n    \"\"\"Say it.\"\"\"\n    raise NotImplementedError  # yours\n"
  local answer = factory.task("ada", { fields = { starter_files = { ["ada_kit.py"] = stub } } })
  local ok, why = gated(answer, { stages = ab.generate.one_stage() })
  lu.assertIsTrue(ok, why)
  local made <close> = factory.run({ answer }, { stages = ab.generate.one_stage():remove "sandbox" })
  lu.assertEquals(made.accepted[1].files["ada_kit.py"].bytes, stub)
  lu.assertStrContains(made.accepted[1].solution["ada_kit.py"].bytes, "return 'ada'")
  lu.assertStrContains(made.prompts[1], "starter_files has the stubs themselves")
  answer.solution_files = nil
  lu.assertEquals(select(2, gated(answer, { stages = ab.generate.one_stage() })), "no solution came with it: nothing proves that it can be solved")
  local same = factory.task("ada", { fields = {} })
  same.starter_files = same.solution_files
  lu.assertEquals(select(2, gated(same, { stages = ab.generate.one_stage() })), "nothing was left out: the starter is the solution")
end

-- ---------------------------------------------------------------- diversity

function M.test_the_mix_of_what_is_accepted_follows_the_weights()
  local plan = spread.new { mix = { easy = 5, medium = 3, hard = 2 }, families = { "a", "b" }, constraints = "" }
  local counts, rejected = { easy = 0, medium = 0, hard = 0 }, 0
  for i = 1, 400 do
    local spec = plan:next(i)
    local ok = spec.difficulty ~= "hard" or i % 3 == 0 -- two of three hard ones fail
    plan:ended(spec, ok)
    if ok then counts[spec.difficulty] = counts[spec.difficulty] + 1 else rejected = rejected + 1 end
  end
  local all = 400 - rejected
  lu.assertAlmostEquals(counts.easy / counts.medium, 5 / 3, 0.1)
  lu.assertTrue(counts.hard / all > 0.12, counts.hard / all) -- more tries made up for most of the failures
end

function M.test_a_family_that_never_succeeds_leaves_turns_to_the_others()
  local plan = spread.new { mix = { "easy" }, families = { "bad", "good" }, constraints = "" }
  local good = 0
  for i = 1, 100 do
    local spec = plan:next(i)
    plan:ended(spec, spec.family == "good")
    if spec.family == "good" then good = good + 1 end
  end
  lu.assertTrue(good >= 15, good)
end

function M.test_families_seeds_and_coverage()
  local opts = { mix = { easy = 1 }, seeds = { "a shop", "a garden" }, seed = 7, families = { "sets", "maps" } }
  local answers = { factory.task "ada", factory.task "byron", factory.task("cid", { asserts = 1 }), factory.task "countess" }
  local made <close> = factory.run(answers, opts)
  local ideas = { shop = 0, garden = 0 }
  for _, prompt in ipairs(made.prompts) do
    local idea = prompt:match "seed of an idea: a (%w+)"
    ideas[idea] = ideas[idea] + 1
  end
  lu.assertEquals(ideas, { shop = 2, garden = 2 })
  local again <close> = factory.run(answers, opts)
  lu.assertEquals(again.prompts, made.prompts) -- the same seed, the same plan
  local sums = { accepted = 0, tried = 0 }
  for _, row in ipairs(assert(ab.generate.stats(made.out)).coverage) do
    lu.assertEquals(row.difficulty, "easy")
    sums.accepted, sums.tried = sums.accepted + row.accepted, sums.tried + row.tried
  end
  lu.assertEquals(sums, { accepted = 3, tried = 4 })
  lu.assertEquals(made.accepted[1].metadata.generation.seed, 8)
end

function M.test_vary_and_evolve_show_the_parent_and_refuse_a_copy_of_it()
  local parent <close> = factory.run { factory.task "ada" }
  for how, words in pairs { vary = "the same skill and difficulty", evolve = "a harder task that grows out of" } do
    local made <close> = factory.run({ factory.task "ada", factory.task "byron" }, { parents = { parent.accepted[1] }, how = how })
    lu.assertStrContains(made.prompts[1], words)
    lu.assertStrContains(made.prompts[1], "return 'ada' + str(x * 3 + 21)")
    lu.assertStrContains(made.prompts[1], "--- tests tests/test_ada.py")
    lu.assertEquals(made.rejects[1].stage, "dedup")
    local made_from = made.accepted[1].metadata.generation.parent
    lu.assertEquals({ made_from.task_id, made_from.how, made_from.hash }, { "ada", how, parent.accepted[1].hash })
  end
  lu.assertErrorMsgContains("`parents` needs `how`", function() ab.generate.pipeline { model = factory.teacher {}, parents = { parent.accepted[1] } } end)
end

return M

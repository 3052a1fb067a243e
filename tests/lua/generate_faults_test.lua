-- The faults of AgentBox's generation, D1 to D18 and E1, each with the right behaviour; and its vectors where they still make sense.
local ab = require "agentbox"
local extract = require "agentbox.generate.extract"
local index = require "agentbox.generate.index"
local judge = require "agentbox.generate.judge"
local lu = require "luaunit"
local minhash = require "agentbox.sys.minhash"
local review = require "agentbox.generate.review"
local setup = require "agentbox.cli._generate_setup"

local factory = dofile "tests/support/factory.lua"
local fakellm = dofile "tests/support/fakellm.lua"

local M = {}

local YES = '{"accept": true, "score": 0.9, "reasons": ["a clear contract"]}'

local function names(out)
  local list = {}
  for i, entry in ipairs(assert(ab.fs.list(out))) do list[i] = entry.name end
  return list
end

-- ---------------------------------------------------------------- the batch

function M.test_D1_output_directories_share_nothing()
  local dir <close> = factory.folder()
  for _, name in ipairs { "a", "b" } do
    local model = factory.teacher { factory.task "ada" }
    local pipeline = ab.generate.pipeline { model = model, stages = factory.without "sandbox" }
    for _ in pipeline:batch { target = 1, out = dir.path .. "/" .. name } do end -- luacheck: ignore
    lu.assertEquals(names(dir.path .. "/" .. name), { "ada" })
  end
  lu.assertEquals(names(dir.path), { "a", "a.state", "b", "b.state" })
end

function M.test_D2_a_deleted_task_is_made_up_for()
  local dir <close> = factory.folder()
  local answers = { factory.task "ada", factory.task "byron" }
  for _ = 1, 2 do
    local pipeline = ab.generate.pipeline { model = factory.teacher(answers), stages = factory.without "sandbox" }
    for _ in pipeline:batch { target = 1, max_rounds = 2, out = dir.path .. "/t", concurrency = 1 } do end -- luacheck: ignore
    local there = names(dir.path .. "/t")
    lu.assertEquals(#there, 1)
    assert(ab.fs.remove(dir.path .. "/t/" .. there[1], true))
  end
end

function M.test_D3_the_same_task_three_times_at_once_is_accepted_once()
  local arrived, gate = 0, ab.async.semaphore(2)
  local held = { gate:acquire(), gate:acquire() }
  local stages = factory.without("sandbox"):before("accept", "together", function()
    arrived = arrived + 1
    if arrived < 3 then
      gate:acquire()
    else
      for _, one in ipairs(held) do one:release() end
    end
    return true
  end)
  local same = factory.task "ada"
  local made <close> = factory.run({ same, same, same }, { stages = stages }, { concurrency = 3 })
  lu.assertEquals(#made.accepted, 1)
  local reasons = {}
  for _, line in pairs(made.rejects) do reasons[#reasons + 1] = line.stage .. ": " .. line.reason end
  lu.assertEquals(reasons, { "accept: a duplicate of ada (1.00 alike)", "accept: a duplicate of ada (1.00 alike)" })
end

function M.test_D4_mending_JSON_leaves_code_alone()
  local task = factory.task("ada", { body = "def ada(x):\n    \"\"\"True or None.\"\"\"\n    return None if x is True else 'true, null,}'\n" })
  local broken = ab.json.encode(task):gsub("}$", ', "metadata": {"tags": ["a",], "ok": True, "no": None,},}')
  local made <close> = factory.run { broken }
  lu.assertEquals(#made.accepted, 1, made.rejects[1] and made.rejects[1].reason)
  lu.assertStrContains(made.accepted[1].solution["ada_kit.py"].bytes, "return None if x is True else 'true, null,}'")
  lu.assertStrContains(made.accepted[1].files["ada_kit.py"].bytes, '"""True or None."""')
end

-- Shell tasks whose tests cannot say anything about the work.
local function shell_with(test, timeout_s)
  local shell = require "agentbox.generate.languages.shell"
  local language = ab.generate.language { api = 1, name = "shell", extensions = { "sh" }, is_test = shell.is_test, stub = "exit 1",
    cheat = "exit 0\n", teach = "Shell.", support = shell.support,
    verifier = { type = "command", command = "sh tests/run.sh", timeout_s = timeout_s or 20 } }
  return language, { task_id = "t", description = "Write add.sh.",
    solution_files = { ["add.sh"] = "# BEGIN SOLUTION\necho $(($1 + $2))\n# END SOLUTION\n" },
    test_files = { ["tests/test_add.sh"] = test } }
end

local function shell_test(command)
  return ('test_a() {\n    %s\n    check "a" 1 1\n    check "b" 2 2\n    check "c" 3 3\n}\n'):format(command)
end

function M.test_D5_a_broken_test_is_no_failing_starter()
  for test, reason in pairs {
    [shell_test "no_such_program"] = "a program is missing",
    [shell_test "kill -9 $PPID"] = "no test gave a verdict",
    [shell_test "sleep 60"] = "no result within 0.2 s",
  } do
    local language, answer = shell_with(test, reason:find "0.2" and 0.2 or nil)
    local made <close> = factory.run({ answer }, { language = language, stages = ab.generate.two_stage() })
    lu.assertEquals(made.rejects[1].stage, "sandbox")
    lu.assertStrContains(made.rejects[1].reason, "the starter fails for the wrong reason: " .. reason)
  end
  local import <close> = factory.run({ factory.task("ada", { tests = "import nowhere\n\ndef test():\n    assert 1\n    assert 2\n    assert 3\n" }) },
    { stages = ab.generate.two_stage() })
  lu.assertStrContains(import.rejects[1].reason, "ModuleNotFoundError")
end

function M.test_D6_without_static_means_without()
  local few = factory.task("ada", { asserts = 1 })
  local made <close> = factory.run { few }
  lu.assertEquals({ made.rejects[1].stage, made.rejects[1].reason }, { "static", "1 assertions in the tests, at least 3 are wanted" })
  local config = assert(require "agentbox.config".load { path = nil, env = function() end, cwd = "/" })
  local pipeline = assert(setup.pipeline({ model = "m", no_static_qc = true, no_llm_judge = true }, config))
  for _, stage in ipairs(pipeline.opts.stages) do lu.assertNotEquals(stage.name, "static") end
  local without <close> = factory.run({ few }, { stages = factory.without("sandbox", "static") })
  lu.assertEquals(#without.accepted, 1)
end

-- What a pipeline made from a file and flags sends to the teacher.
local function configured(yaml, args, env)
  local dir <close> = factory.folder()
  local fake = fakellm.script { "no task", "no task" }
  assert(ab.fs.write(dir.path .. "/agentbox.yaml", (yaml:gsub("URL", fake.url))))
  local config = assert(require "agentbox.config".load { path = dir.path .. "/agentbox.yaml", env = function(name) return (env or {})[name] end })
  local pipeline = assert(setup.pipeline(args, config))
  assert(require "agentbox.generate.signature".new { { "a", "string", "" } }:raw(pipeline.opts.model, "?", {
    session = "s", sampling = { max_tokens = pipeline.opts.max_tokens } }))
  return pipeline.opts, fake.log()[1]
end

function M.test_D7_the_project_file_is_honoured()
  local yaml = [[
teacher: { model: t-1, base_url: "URL", api_key: "${KEY}", temperature: 0.11, timeout_s: 77, extra_body: { top_k: 5 } }
judge: { model: j-1, base_url: "URL" }
generate: { min_score: 0, max_tokens: 321, votes: 3, use_dspy: true }
]]
  local opts, sent = configured(yaml, {}, { KEY = "from-file", OPENAI_API_KEY = "from-environment" })
  lu.assertEquals({ sent.body.model, sent.body.temperature, sent.body.top_k, sent.body.max_tokens }, { "t-1", 0.11, 5, 321 })
  lu.assertEquals(sent.headers.authorization or sent.headers.Authorization, "Bearer from-file")
  lu.assertEquals({ opts.judge.min_score, opts.judge.votes, opts.judge.model.name }, { 0, 3, "j-1" })
  local flags, again = configured(yaml, { model = "t-2", temperature = 0.5, max_tokens = 9, min_score = 0.4, no_llm_judge = true }, { KEY = "k" })
  lu.assertEquals({ again.body.model, again.body.temperature, again.body.max_tokens, flags.judge }, { "t-2", 0.5, 9, nil })
  local off = configured('teacher: { model: t, base_url: "URL", max_tokens: 55 }\ngenerate: { llm_judge: false, max_tokens: 66 }\n', {})
  lu.assertEquals({ off.judge, off.max_tokens }, { nil, 55 })
end

function M.test_D8_a_file_is_no_test_because_test_is_in_its_name()
  local answer = factory.task("ada", { files = { ["latest.py"] = "def ada(x):\n    return x + 1\n" },
    tests = "from latest import ada\n\n\ndef test_it():\n    assert ada(1) == 2\n    assert ada(2) == 3\n    assert ada(0) == 1\n" })
  local made <close> = factory.run { answer }
  lu.assertEquals(made.accepted[1].files["latest.py"].bytes, "def ada(x):\n    raise NotImplementedError\n")
  lu.assertEquals(made.accepted[1].solution["latest.py"].bytes, "def ada(x):\n    return x + 1\n")
end

function M.test_D9_the_queue_has_each_candidate_as_soon_as_it_ended()
  local dir <close> = factory.folder()
  local seen = {}
  local model = factory.teacher { factory.task("ada", { asserts = 1 }), factory.task "byron" }
  local pipeline = ab.generate.pipeline { model = model, stages = factory.without "sandbox" }
  local run <close> = assert(pipeline:start { target = 1, concurrency = 1, max_rounds = 2, out = dir.path .. "/t", on_end = function()
    local row = {}
    assert(review.each(dir.path .. "/t", function(item) row[#row + 1] = item.name end))
    seen[#seen + 1] = table.concat(row, " ")
  end })
  while run.results:take() do end -- luacheck: ignore
  lu.assertEquals(seen, { "@1", "byron @1" })
end

function M.test_D10_tasks_that_are_not_Python_do_not_collide()
  local function shell(name, sum)
    return { task_id = name, description = "Write " .. name .. ".sh.",
      solution_files = { [name .. ".sh"] = ("# BEGIN SOLUTION\necho $(($1 %s $2))\n# END SOLUTION\n"):format(sum) },
      test_files = { [("tests/test_%s.sh"):format(name)] =
        ('test_%s() {\n    check "a" %d "$(sh %s.sh 5 3)"\n    check "b" 0 "$(sh %s.sh 0 0)"\n    check "c" 7 "$(sh %s.sh 7 0)"\n}\n'):format(
          name, sum == "+" and 8 or 2, name, name, name) } }
  end
  local made <close> = factory.run({ shell("sum", "+"), shell("difference_of_two", "-") }, { language = "shell" })
  lu.assertEquals(#made.accepted, 2, made.rejects[2] and made.rejects[2].reason)
  lu.assertNotEquals(made.accepted[1].metadata.signature_hash, made.accepted[2].metadata.signature_hash)
end

-- ---------------------------------------------------------------- judging

function M.test_D11_a_verdict_is_kept_only_for_the_same_task_judge_and_rules()
  local dir <close> = factory.folder()
  local asked = 0
  local function model(name)
    local one = ab.model.fn(function()
      asked = asked + 1
      return YES
    end)
    one.name = name
    return one
  end
  local tasks = { ab.task.new { task_id = "a", description = "Do it.", starter_files = { ["a.py"] = "pass\n" },
    verifier = { type = "pytest" } } }
  local function again(opts)
    local before = asked
    opts.out = dir.path .. "/audit.jsonl"
    local audit = assert(ab.generate.judge(opts.tasks or tasks, { model = opts.model or model "j", out = opts.out, votes = opts.votes,
      min_score = opts.min_score, rubric = opts.rubric }))
    lu.assertIsTrue(audit.rows[1].ok)
    return asked - before
  end
  lu.assertEquals({ again {}, again {} }, { 1, 0 })
  lu.assertEquals({ again { votes = 3 }, again { min_score = 0.5 }, again { model = model "k" }, again { rubric = "Be kind." } }, { 3, 1, 1, 1 })
  local changed = ab.task.new { task_id = "a", description = "Do it well.", starter_files = { ["a.py"] = "pass\n" },
    verifier = { type = "pytest" } }
  lu.assertEquals(again { tasks = { changed } }, 1)
  lu.assertEquals(again {}, 0)
end

function M.test_D12_a_score_is_read_on_the_scale_that_it_names()
  lu.assertEquals({ extract.number "3 out of 10", extract.number "8/10", extract.number "70 %" }, { 0.3, 0.8, 0.7 })
  local conf = { votes = 1, min_score = 0.65 }
  local verdict = assert(judge.ask(conf, "?", function() return '{"accept": true, "score": 8}' end))
  lu.assertEquals({ verdict.accept, verdict.unreadable }, { false, 1 })
  lu.assertStrContains(verdict.why, "score is 8, not 0 to 1")
end

-- One stage: the starter is as the teacher wrote it, so its stubs are looked at.
local function stubs(starter)
  local answer = factory.task("ada", { fields = { starter_files = { ["ada_kit.py"] = starter } } })
  return factory.run({ answer }, { stages = ab.generate.one_stage():remove "sandbox" })
end

function M.test_D13_what_a_stub_is()
  for starter, ok in pairs {
    ["def ada(x):\n    raise NotImplementedError\n"] = true,
    ["def ada(x):\n    raise ValueError(x)\n"] = false,
    ["class A:\n    def __init__(self, x):\n        self.x = x\n\ndef ada(x):\n    ...\n"] = true,
    ["def _helper(x):\n    return x + 1\n\ndef ada(x):\n    pass\n"] = true,
    ["class A:\n    class B:\n        def real(self):\n            return 42\n\ndef ada(x):\n    pass\n"] = false,
  } do
    local made <close> = stubs(starter)
    lu.assertEquals({ starter, #made.accepted == 1 }, { starter, ok })
    if not ok then lu.assertStrContains(made.rejects[1].reason, "is not a stub") end
  end
end

function M.test_D14_D15_a_task_says_where_it_comes_from_and_why_it_was_accepted()
  local made <close> = factory.run({ factory.task "ada" }, { judge = { model = ab.model.fn(function() return YES end) } })
  local metadata = made.accepted[1].metadata
  lu.assertEquals({ metadata.source, metadata.generator_model, metadata.generation.index }, { "generate", "fn", 1 })
  lu.assertEquals(metadata.generation.judge.reasons, { "a clear contract" })
  local item = assert(review.find(made.out, "ada"))
  lu.assertEquals(item.report.judge.reasons, { "a clear contract" })
end

function M.test_D16_the_judge_sees_the_solution_and_what_the_sandbox_said()
  local seen
  local model = ab.model.fn(function(request)
    seen = request.messages[2].content
    return YES
  end)
  local made <close> = factory.run({ factory.task "ada" }, { judge = { model = model }, stages = ab.generate.two_stage() })
  lu.assertEquals(#made.accepted, 1, made.rejects[1] and made.rejects[1].reason)
  lu.assertStrContains(seen, "SOLUTION, not given to the agent: ada_kit.py")
  lu.assertStrContains(seen, "the starter in the sandbox: 4 of 4 tests failed")
  lu.assertStrContains(seen, "the solution in the sandbox: 4 tests passed, 2 times of 2")
  lu.assertStrContains(seen, "the tests noticed 2 of 2 faults")
end

function M.test_D17_one_call_for_each_candidate_and_rounds_that_end()
  local calls = 0
  local model = ab.model.fn(function()
    calls = calls + 1
    return "no"
  end)
  local made <close> = factory.run({}, { model = model }, { target = 2, max_rounds = 3 })
  lu.assertEquals({ calls, made.summary.tried }, { 6, 6 })
  lu.assertStrContains(made.summary.why, "6 candidates were tried")
  for cap, value in pairs { calls = 2, tokens = 8000, cost = 0.008 } do
    calls = 0
    local capped <close> = factory.run({}, { model = model }, { target = 2, max_rounds = 3, caps = { [cap] = value },
      prices = { prompt = 1, completion = 1 } })
    lu.assertEquals({ cap, capped.failure.cap, capped.failure.code }, { cap, cap, "limit" })
    lu.assertTrue(calls <= 3)
    lu.assertTrue((capped.summary.spent[cap] or 0) <= value)
  end
end

function M.test_D18_a_file_that_is_no_task_does_not_count()
  local dir <close> = factory.folder()
  local out = dir.path .. "/t"
  assert(ab.fs.mkdir(out .. "/ada", true))
  assert(ab.fs.write(out .. "/ada/task.json", '{"task_id": "ada"}'))
  assert(ab.fs.write(out .. "/byron.json", '{"task_id": "byron"}'))
  local pipeline = ab.generate.pipeline { model = factory.teacher { factory.task "ada" }, stages = factory.without "sandbox" }
  local run <close> = assert(pipeline:start { target = 1, out = out })
  while run.results:take() do end -- luacheck: ignore
  lu.assertEquals({ run:summary().accepted, #run:summary().bad }, { 1, 1 })
  lu.assertEquals(names(out), { "ada", "ada_1", "byron.json" })
end

-- ---------------------------------------------------------------- hostile names

function M.test_E1_no_id_and_no_path_leads_out()
  local ids = { "../../out", "/abs/olute", "..", "a/../../b", ".", "a\0b", "a\nb", ("x"):rep(600), "", "-rf", ".hidden", "a/b", "C:\\x", "ä ö" }
  local answers = {}
  for i, id in ipairs(ids) do
    answers[i] = factory.task("t" .. ("x"):rep(i))
    answers[i].task_id = id
  end
  local paths = { "../x.py", "/etc/x.py", "a/../../x.py", "a\0.py", "~/../../x.py", "./", "tests/../../x.py" }
  for _, path in ipairs(paths) do
    local answer = factory.task("p" .. ("x"):rep(#answers))
    answer.solution_files[path] = "x = 1\n"
    answers[#answers + 1] = answer
  end
  local made <close> = factory.run(answers)
  lu.assertEquals(names(made.dir), { "tasks", "tasks.state" })
  for _, name in ipairs(names(made.out)) do lu.assertNil(name:find "[^%w_.-]" or name:find "^[.-]") end
  for i = 1, 9 do lu.assertEquals({ i, made.rejects[i] and made.rejects[i].stage }, { i, i ~= 5 and "parse" or nil }) end
  for i = #ids + 1, #answers do lu.assertEquals({ paths[i - #ids], made.rejects[i].stage }, { paths[i - #ids], "parse" }) end
  lu.assertEquals(#made.accepted, 6)
end

-- ---------------------------------------------------------------- vectors

function M.test_vectors_of_signature_and_likeness()
  lu.assertEquals(index.signature({ "g" }, { ["test_b.py"] = "assert g()\n" }), "c94d32110526cfa95ab0f8d7")
  local text = index.text { ["b.py"] = "def g(): pass\n", ["test_b.py"] = "assert g()\n" }
  lu.assertAlmostEquals(minhash.jaccard(text, "def"), 1 / 19, 1e-12) -- 19 runs of three
  lu.assertEquals({ minhash.jaccard("", ""), minhash.jaccard("", "abc"), minhash.jaccard("ab", "ab") }, { 1.0, 0.0, 1.0 })
end

function M.test_vectors_37_38_40_41_46()
  local whole <close> = stubs "def ada(x):\n    return 'ada' + str(x)\n"
  lu.assertStrContains(whole.rejects[1].reason, "stub") -- 37
  local two <close> = factory.run { factory.task("ada", { asserts = 1 }), factory.task "byron" }
  lu.assertStrContains(two.rejects[1].reason, "at least 3") -- 38
  local task = two.accepted[1]
  lu.assertEquals(task.files["tests/test_byron.py"].bytes, factory.task "byron".test_files["tests/test_byron.py"]) -- 40
  lu.assertEquals(two.reports.byron.static.errors, {}) -- 41
  lu.assertEquals({ task.task_id, task.metadata.source, task.metadata.generator_model }, { "byron", "generate", "fn" }) -- 46
end

function M.test_vectors_43_44()
  local made <close> = factory.run({ factory.task("ada", { asserts = 6 }), factory.task("ada", { asserts = 6 }), factory.task "countess" },
    { dedup = { threshold = 0.95 } })
  lu.assertEquals({ #made.accepted, made.rejects[2].stage }, { 2, "dedup" }) -- 43
  local metadata = made.accepted[1].metadata
  lu.assertEquals({ metadata.n_asserts, metadata.heuristic_label }, { 6, "hard" }) -- 44
end

function M.test_vectors_47_49_50_52()
  lu.assertEquals({ extract.boolean(true), extract.boolean "false", extract.boolean "yes" }, { true, false, true }) -- 47
  local answers = { YES, '{"accept": true, "score": 0.2, "reasons": []}' }
  local prompts = {}
  local model = ab.model.fn(function(request)
    local n = tonumber(request.session:match "^judge%-(%d+)")
    prompts[n] = request.messages[2].content
    return answers[n]
  end)
  local made <close> = factory.run({ factory.task "ada", factory.task "byron" }, { judge = { model = model }, stages = ab.generate.two_stage() })
  lu.assertStrContains(prompts[1], "task_id: ada") -- 49
  lu.assertStrContains(prompts[1], "return 'ada' + str(x * 3 + 21)")
  lu.assertEquals({ made.reports.ada.judge.score, made.reports.ada.judge.accept }, { 0.9, true }) -- 50
  local line = made.rejects[2] -- 52
  lu.assertEquals({ line.stage, line.report.judge.score, line.report.sandbox.starter }, { "judge", 0.2, "4 of 4 tests failed" })
end

return M

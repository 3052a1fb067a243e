-- Usage: agentbox script llama_generate.lua ADDRESS. A task factory with a real small model: what it writes is mostly no task, and
-- that is the point.
local ab = require "agentbox"
local test = require "agentbox.test"

local model = ab.model.open { model = "smollm2", base_url = arg[1] .. "/v1", timeout_s = 300, max_tries = 1, proxy = false,
  sampling = { temperature = 0.4 } }
local dir = assert(ab.fs.tmpdir "agentbox-llama")
local gone <close> = setmetatable({}, { __close = function() ab.fs.remove(dir, true) end }) -- luacheck: ignore gone

local function say(what) io.stdout:write("ok - ", what, "\n") end

local shell = require("agentbox.generate.language").find "shell"

-- As teacher: every candidate ends with an answer to why, and no cap is passed.
local caps = { calls = 2, tokens = 9000 }
local factory = ab.generate.pipeline { model = model, language = "shell", judge = { votes = 2 }, max_tokens = 48, mutants = 2 }
local run <close> = assert(factory:start { target = 3, concurrency = 1, max_rounds = 4, out = dir .. "/a", caps = caps })
while run.results:take() do end -- luacheck: ignore
local sum = run:summary()
test.ok(sum.spent.calls >= 1 and sum.spent.calls <= caps.calls)
test.ok(sum.spent.tokens <= caps.tokens)
test.eq(run.failure.code, "limit")
local rejects = assert(ab.generate.rejects(dir .. "/a"))
test.ok(#rejects + sum.accepted == sum.tried and sum.tried >= 1)
for _, one in ipairs(rejects) do
  test.ok(#one.stage > 0 and #one.reason > 0)
  say(("teacher: rejected by %s: %s"):format(one.stage, ("%q"):format(one.reason):sub(1, 90)))
end
say(("teacher: %d tried, %d calls, %d tokens; %s"):format(sum.tried, sum.spent.calls, sum.spent.tokens, sum.why))
run:close()

-- As judge of a good task by a scripted teacher, and as its student if it lets it through: the whole path, in sandboxes too.
local example = shell.example
local teacher = ab.model.fn(function()
  return ab.json.encode { task_id = "add", description = example.description, solution_files = example.solution_files,
    test_files = example.test_files }
end)
local whole = ab.generate.pipeline { model = teacher, language = "shell", judge = { model = model, votes = 2, min_score = 0 }, mutants = 2,
  solver = { model = model, attempts = 1, max_steps = 1 }, max_tokens = 64 }
local through <close> = assert(whole:start { target = 1, concurrency = 1, max_rounds = 1, out = dir .. "/b", caps = { calls = 12 } })
local accepted = through.results:take()
local reject = ab.generate.rejects(dir .. "/b")[1]
test.ok(accepted or reject, through.failure and through.failure.msg)
local report = accepted and accepted[2] or reject.report
test.eq(report.sandbox.starter, "1 of 1 tests failed")
test.eq(report.judge.model, "smollm2")
test.eq(report.judge.votes, 2)
test.ok(through:summary().spent.calls <= 12)
say(("judge: score %.2f, %d of 2 votes, %d unreadable; %s"):format(report.judge.score, report.judge.yes, report.judge.unreadable,
  accepted and "accepted" or reject.stage .. ": " .. reject.reason:sub(1, 80)))
if report.solve then say(("student: solved %.0f %% in %.0f turns"):format(report.solve.pass_rate * 100, report.solve.steps)) end
through:close()

-- validate-llm: one row a task, again without asking.
local tasks = { assert(ab.task.load "tasks/sum_list") }
local opts = { model = model, votes = 1, out = dir .. "/audit.jsonl", concurrency = 1, max_tokens = 64 }
local audit = assert(ab.generate.judge(tasks, opts))
test.eq(#audit.rows, 1)
test.eq(audit.asked, 1)
for _, row in ipairs(audit.rows) do
  test.ok(row.llm_score >= 0 and row.llm_score <= 1)
  say(("validate-llm: %s %.2f%s"):format(row.task_id, row.llm_score, row.unreadable > 0 and " (no verdict)" or ""))
end
test.eq(assert(ab.generate.judge(tasks, opts)).asked, 0)
say "validate-llm: the second time nobody is asked"

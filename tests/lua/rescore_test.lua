--- Stored rollouts, judged again: another verifier, the files that were kept, and what must not change.
local export = require "agentbox.export"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local rescore = require "agentbox.rescore"
local rollout = require "agentbox.rollout"
local store = require "agentbox.store"
local traj = require "agentbox.traj"
local verify = require "agentbox.verify"

local M = {}
local dir

local function task(fields)
  local out = { task_id = "t", description = "d", files = { ["a.txt"] = "start\n", ["gone.txt"] = "x" }, artifacts = { "**" },
    verifier = { type = "command", command = "true" } }
  for key, value in pairs(fields or {}) do out[key] = value end
  return out
end

local function run(verifier, opts)
  opts = opts or {}
  local call = { name = "run_command", arguments = { command = "echo done > a.txt; rm -f gone.txt" } }
  local s <close> = assert(store.open(dir, { run_id = "old", agentbox_json = false }))
  assert(s:append(assert(rollout.run {
    task = task(opts.task), model = opts.model or model.scripted { { tool_calls = { call } }, "I am done." }, sandbox = { backend = "none" },
    verifier = verifier, run_id = "old", id = "old/t", agent = { step_penalty = 0.25 },
  })))
end

local function again(opts)
  local all = { input = dir .. "/old", out = dir, run_id = "new", tasks = { task() }, sandbox = { backend = "none" } }
  for key, value in pairs(opts) do all[key] = value end
  local sum = assert(rescore.run(all))
  return assert(traj.load(dir .. "/new")), sum
end

function M.setUp() dir = assert(fs.tmpdir "agentbox-rescore-") end

function M.tearDown() assert(fs.remove(dir, true)) end

function M.test_the_files_that_were_kept_are_judged()
  run(function() return 0 end)
  local t, sum = again { verifier = verify.files { { "a.txt", equals = "done\n" }, { "gone.txt", absent = true }, { "b.txt" } } }
  lu.assertEquals({ sum.rollouts, sum.judged, sum.failed }, { 1, 1, 0 }, sum.first)
  lu.assertAlmostEquals(t.outcome, 2 / 3, 1e-9)
  lu.assertAlmostEquals(t.reward, 2 / 3 - 0.25, 1e-9) -- the penalty of one step stays
  lu.assertEquals({ t.line.rescored.run, t.line.rescored.value, t.line.rescored.scored, t.run_id }, { "old", -0.25, true, "new" })
  lu.assertEquals(t:artifact "a.txt", "done\n")
  lu.assertEquals(assert(traj.load(dir .. "/old")).reward, -0.25)
end

-- Symptom 39: judging is a stage of its own, which can be made again.
function M.test_s39_what_a_judge_left_unscored_is_scored_later()
  run(function() return nil, "the judge is away" end)
  lu.assertEquals({ assert(traj.load(dir .. "/old")).scored }, { false })
  local judge = model.fn(function() return json.encode { score = 0.8, reason = "fine" } end)
  local t = again { verifier = verify.llm_judge { rubric = "R", show = { "messages" } }, models = { judge = judge } }
  lu.assertEquals({ t.reward, t.scored, t.final_status, t.failure_class, t.error }, { 0.8, true, "success" })
  lu.assertEquals({ t.stop_reason, t.line.use.sft, t.line.use.why[1] }, { "final_answer", true, "no token ids from the server" })
  lu.assertEquals(require "agentbox.record.check".check(t.line), {})
  local result = assert(export.convert { input = dir .. "/new", format = "openai", out = dir .. "/x.jsonl" })
  lu.assertEquals(result.written, 1)
end

function M.test_a_judge_that_fails_leaves_unscored_what_had_a_score()
  run(function() return 1 end)
  local t, sum = again { verifier = function() return nil, "no" end }
  lu.assertEquals({ t.scored, t.reward, t.stop_reason, t.failure_class, t.line.rescored.value }, { false, nil, "scorer_error", "verifier", 0.75 })
  lu.assertEquals({ sum.failed, sum.first, t.line.use.rl }, { 1, "no", false })
  lu.assertEquals(require "agentbox.record.check".check(t.line), {})
end

function M.test_what_the_infrastructure_ended_stays_as_it_is()
  run(nil, { model = model.fn(function() return nil, require "agentbox.err".new("network", "refused") end) })
  local t, sum = again { verifier = function() return 1 end }
  lu.assertEquals({ t.scored, t.failure_class, sum.judged, t.line.rescored }, { false, "model_server", 0 })
end

function M.test_records_without_their_files_and_other_tasks_are_told()
  run(function() return 1 end, { task = { artifacts = json.array {} } })
  local looks = function(ev) return ev.after:read(ev.workspace .. "/a.txt") and 1 or 0 end
  for said, opts in pairs {
    ["artifacts are not"] = { tasks = { task { artifacts = json.array {} } }, verifier = looks },
    ["another version"] = { verifier = function() return 1 end }, ["is not among the tasks"] = { tasks = { task { task_id = "u" } } },
  } do
    local t, sum = again(opts)
    lu.assertIsFalse(t.scored)
    lu.assertStrContains(sum.first, said)
    assert(fs.remove(dir .. "/new", true))
  end
  lu.assertEquals(again { any_version = true, verifier = function() return 0.5 end }.outcome, 0.5)
end

return M

--- Runs of many rollouts. What fails in a run, whose doing it was, and what follows.
local async = require "agentbox.async"
local err = require "agentbox.err"
local lu = require "luaunit"
local model = require "agentbox.model"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))

local M = {}

local task, tasks, start, gather = runs.task, runs.tasks, runs.start, runs.gather
local ids, tmp, by_slot = runs.ids, runs.tmp, runs.by_slot

function M.test_B25_what_the_server_spoilt_is_made_again()
  local tries = {}
  local flaky = model.fn(function(request)
    local place = request.session:match "(t%d+/%d+)"
    tries[place] = (tries[place] or 0) + 1
    if tries[place] < 3 and tonumber(place:match "t(%d+)") % 2 == 0 then return nil, err.new("model", "HTTP 500: no") end
    return "done"
  end)
  local dir <close> = tmp()
  local run <close> = start { tasks = tasks(10), model = flaky, out = dir.path, run_id = "r", agentbox_json = false }
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.solved, sum.attempts, sum.retries }, { 10, 10, 20, 10 })
  lu.assertEquals(sum.failed_attempts, { model_server = 10 })
  for slot, list in pairs(by_slot(dir.path)) do
    local even = tonumber(slot:match "t(%d+)") % 2 == 0
    lu.assertEquals(#list, even and 3 or 1, slot)
    for i, t in ipairs(list) do
      lu.assertEquals({ t.line.attempt, t.scored }, { i - 1, i == #list })
    end
  end
end

function M.test_the_policys_failure_is_never_made_again()
  local run <close> = start { tasks = tasks(3, { verifier = { type = "command", command = "false" } }) }
  local sum = run:wait()
  lu.assertEquals({ sum.attempts, sum.scored, sum.solved, sum.by_status.failed }, { 3, 3, 0, 3 })
end

function M.test_a_broken_server_stops_the_run()
  local calls = 0
  local dead = model.fn(function()
    calls = calls + 1
    return nil, err.new("model", "HTTP 503: gone")
  end)
  local run <close> = start { tasks = tasks(500), model = dead }
  local sum = run:wait()
  lu.assertNotNil(sum.failure:find("the first 16 attempts all failed; the last one: HTTP 503: gone", 1, true), sum.failure)
  lu.assertTrue(calls < 40, calls)
end

function M.test_a_quota_by_number_and_by_share()
  local n = 0
  local function every(k)
    n = 0
    return model.fn(function()
      n = n + 1
      if n % k == 0 then return nil, err.new("model", "HTTP 500") end
      return "done"
    end)
  end
  local run <close> = start { tasks = tasks(100), model = every(3), attempts = 1, max_errors = 5, concurrency = 1 }
  lu.assertEquals({ run:wait().unscored, run.failure.quota }, { 6, true })
  local other <close> = start { tasks = tasks(100), model = every(3), attempts = 1, max_errors = 0.25, concurrency = 1 }
  local sum = other:wait()
  lu.assertEquals({ sum.rollouts, sum.failure ~= nil }, { 20, true })
  local fine <close> = start { tasks = tasks(60), model = every(3), attempts = 1, max_errors = 0.5, concurrency = 1 }
  sum = fine:wait()
  lu.assertEquals({ sum.rollouts, sum.unscored, sum.failure }, { 60, 20 })
end

function M.test_a_poison_task_is_given_up_and_the_others_are_not()
  local list = tasks(3)
  list[2] = task("poison", { setup_commands = { "exit 3" } })
  local told = {}
  local run <close> = start { tasks = list, n = 10, quarantine = 3, concurrency = 2, on_event = function(kind, fields)
    if kind == "quarantine" then told[#told + 1] = fields.task_id end
  end }
  local groups = gather(run)
  local sum = run:wait()
  lu.assertEquals(ids(groups), { "t1", "t3" })
  lu.assertEquals({ told, sum.quarantined, sum.solved }, { { "poison" }, { "poison" }, 20 })
  lu.assertTrue(sum.attempts <= 24, sum.attempts)
  lu.assertEquals(sum.groups.dropped, 1)
end

function M.test_a_task_that_cannot_be_read_is_one_task()
  local list = tasks(4)
  list[3] = { task_id = "bad", description = 7 }
  local run <close> = start { tasks = list, n = 2 }
  lu.assertEquals(ids(gather(run)), { "t1", "t2", "t4" })
  local sum = run:wait()
  lu.assertEquals(sum.bad_tasks, 1)
  lu.assertNotNil(sum.bad_task:find "task 3: .*description")
end

function M.test_a_raise_in_the_labs_stream_ends_the_run_with_its_line()
  local n = 0
  local run <close> = start { n = 2, tasks = function()
    n = n + 1
    if n == 3 then error "no more" end
    return task("t" .. n)
  end }
  local sum = run:wait()
  lu.assertNotNil(sum.failure:find "runner_failures_test%.lua:%d+: no more", sum.failure)
  local ok, problem = pcall(gather, run)
  lu.assertEquals({ ok, problem.code }, { false, "defect" })
end

function M.test_one_rollout_can_be_aborted()
  local run
  run = start { tasks = tasks(3), model = model.fn(function(request)
    if request.session:find "t2/" then
      async.spawn(function() assert(run:abort(request.session)) end)
      async.sleep(60)
    end
    return "done"
  end) }
  local _ <close> = run
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.solved, sum.unscored, sum.by_stop.user_cancel }, { 3, 2, 1, 1 })
  lu.assertFalse(run:abort "nobody")
end

function M.test_what_cannot_be_recorded_ends_the_run()
  local dir <close> = tmp()
  local run <close> = start { tasks = tasks(8), out = dir.path, run_id = "r", agentbox_json = false, concurrency = 1 }
  local append = run.store.append
  local n = 0
  function run.store:append(t)
    n = n + 1
    if n == 3 then return nil, err.new("io", "the disk said no") end
    return append(self, t)
  end
  local sum = run:wait()
  lu.assertEquals({ sum.failure, sum.rollouts, n }, { "the disk said no", 2, 3 })
end

return M

--- Runs of many rollouts. Groups: closed, streamed, partial, oversampled, late.
local async = require "agentbox.async"
local err = require "agentbox.err"
local gate = require "agentbox.async.gate"
local lu = require "luaunit"
local model = require "agentbox.model"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))
local tool = require "agentbox.tool"

local M = {}

local task, tasks, start, gather, ids = runs.task, runs.tasks, runs.start, runs.gather, runs.ids
local counter, tmp, by_slot, by_member = runs.counter, runs.tmp, runs.by_slot, runs.by_member

function M.test_groups_are_streamed_as_they_close_and_marked()
  local run <close> = start {
    tasks = tasks(6), group_size = 4, concurrency = 24,
    model = by_member(function(name, index) return ("%d"):format(name == "t2" and 0 or index % 2) end),
    verifier = function(ev) return tonumber(ev.traj.messages[#ev.traj.messages].content) end,
  }
  local seqs = {}
  for group in run:groups() do
    seqs[#seqs + 1] = group.seq
    local list = assert(group:trajectories())
    lu.assertEquals({ #list, group.partial, group.size }, { 4, false, 4 })
    lu.assertEquals(group.zero_signal, group.id == "t2")
    for i, t in ipairs(list) do
      lu.assertEquals({ t.task_id, t.id, t.reward }, { group.task_id, group.members[i], group.rewards[i] })
    end
    assert(run:ack(group))
  end
  lu.assertEquals(seqs, { 1, 2, 3, 4, 5, 6 })
  lu.assertEquals(run:wait().groups, { closed = 6, whole = 6, partial = 0, dropped = 0, zero_signal = 1 })
end

function M.test_partial_groups_are_delivered_and_single_members_are_not()
  local broken = by_member(function(name, index)
    if name == "t1" and index > 0 or name == "t2" and index == 3 then return nil, err.new("model", "HTTP 500") end
    return "done"
  end)
  local run <close> = start { tasks = tasks(5), n = 4, attempts = 2, model = broken }
  local groups = gather(run)
  lu.assertEquals(ids(groups), { "t2", "t3", "t4", "t5" })
  for _, group in ipairs(groups) do
    lu.assertEquals({ group.partial, #group.members }, { group.id == "t2", group.id == "t2" and 3 or 4 })
  end
  lu.assertEquals(run:wait().groups, { closed = 5, whole = 3, partial = 1, dropped = 1, zero_signal = 4 })
end

function M.test_oversampling_closes_with_the_first_and_tells_the_waste()
  local slow = by_member(function(_, index)
    if index % 3 == 1 then async.sleep(30) end
    return "done"
  end)
  local run <close> = start { tasks = tasks(3), n = 4, oversample = 2, model = slow, concurrency = 18 }
  local groups = gather(run)
  lu.assertEquals(#groups, 3)
  for _, group in ipairs(groups) do
    lu.assertEquals({ #group.members, group.partial, group.waste.rollouts }, { 4, false, 2 })
  end
  local sum = run:wait()
  lu.assertEquals({ sum.waste.rollouts, sum.rollouts, sum.groups.whole }, { 6, 12, 3 })
  lu.assertTrue(sum.wall_s < 20)
end

function M.test_what_a_member_cost_that_was_being_saved_is_waste_too()
  local counted = model.fn(function(request)
    if #request.messages > 2 then return "done" end
    return { tool_calls = { { name = "noop", arguments = {} } } }
  end)
  local noop = tool.define { api = 1, name = "noop", description = "Nothing.", parameters = {}, run = function() return "ok" end }
  local run <close> = start {
    tasks = tasks(1), n = 2, oversample = 1, concurrency = 3, model = counted, tools = "custom", custom_tools = { noop },
  }
  local append, last = run.store.append, nil
  function run.store:append(t)
    last = last or t.id
    while t.id == last and run.tally.groups.closed == 0 do async.yield() end
    return append(self, t)
  end
  local sum = run:wait()
  lu.assertEquals({ sum.waste.rollouts, sum.waste.steps, sum.groups.whole }, { 1, 1, 1 })
end

function M.test_a_straggler_is_given_up_by_the_groups_own_measure()
  local dir <close> = tmp()
  local slow = by_member(function(name, index)
    async.sleep(name == "t1" and index == 2 and 60 or 0.02)
    return "done"
  end)
  local run <close> = start { tasks = tasks(2), n = 4, model = slow, straggler = { factor = 3, min_s = 0.3 }, out = dir.path,
    run_id = "r", agentbox_json = false }
  local groups = gather(run)
  table.sort(groups, function(a, b) return a.id < b.id end)
  lu.assertEquals({ #groups[1].members, groups[1].partial, groups[1].evicted[1].slot }, { 3, true, "t1/2" })
  lu.assertEquals({ #groups[2].members, groups[2].partial }, { 4, false })
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.unscored, sum.evicted, sum.failure }, { 8, 1, 1 })
  local lost = by_slot(dir.path)["t1/2"]
  lu.assertEquals({ #lost, lost[1].stop_reason, lost[1].scored }, { 1, "shutdown", false })
  lu.assertNotNil(lost[1].error:find "straggler: more than")
  -- Symptom: "other" was most of the time of a run with stragglers, though they had waited for the model.
  local timing = lost[1].line.timing
  timing = require "agentbox.json".type(timing) == "raw" and timing:decode() or timing
  lu.assertTrue(timing.model_ms >= 300 and timing.model_ms <= timing.total_ms)
end

-- Symptom: a run that was interrupted while its last rollouts ran said that it had left something out.
function M.test_a_drained_run_that_had_begun_everything_has_ended_with_its_work()
  local door = gate.new(1)
  local pass = door:enter()
  local run <close> = start { tasks = tasks(2), concurrency = 2, model = by_member(function()
    door:enter():release()
    return "done"
  end) }
  while not run.source.ended or run.running < 2 do run:_await(1) end
  run:drain "interrupted"
  pass:release()
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.solved, sum.why }, { 2, 2 })
end

function M.test_a_drained_run_that_left_something_out_says_why()
  local run <close> = start { tasks = tasks(9), concurrency = 1, model = by_member(function() return "done" end) }
  while run.running < 1 do run:_await(1) end
  run:drain "interrupted"
  lu.assertEquals(run:wait().why, "interrupted")
end

function M.test_a_groups_time_closes_it_with_what_is_there()
  local slow = by_member(function(_, index)
    if index > 1 then async.sleep(60) end
    return "done"
  end)
  local run <close> = start { tasks = tasks(1), n = 4, model = slow, group_timeout_s = 3 }
  local groups = gather(run)
  lu.assertEquals({ #groups, #groups[1].members, groups[1].partial, groups[1].why }, { 1, 2, true, "the group's 3 s were over" })
end

function M.test_a_runs_time_ends_it()
  local run <close> = start { tasks = tasks(2), model = model.fn(function() async.sleep(60) return "x" end), run_timeout_s = 0.3 }
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.why }, { 0, "the run's 0.3 s were over" })
end

function M.test_sampling_pauses_for_a_slow_trainer()
  local begun = 0
  local run <close> = start { n = 2, max_lead = 3, concurrency = 2, lookahead = 1, tasks = function()
    begun = begun + 1
    if begun <= 12 then return task("t" .. begun) end
  end }
  local seen = 0
  for group in run:groups() do
    seen = seen + 1
    for _ = 1, 20 do async.yield() end
    async.sleep(0.02)
    lu.assertTrue(run.closed - seen <= 3, ("closed %d, acknowledged %d"):format(run.closed, seen - 1))
    assert(run:ack(group))
  end
  lu.assertEquals(seen, 12)
end

function M.test_leaving_the_loop_stops_the_run_and_waits()
  local ended = counter()
  local run <close> = start { tasks = tasks(50), n = 2, model = model.fn(function(request)
    local _ <close> = ended.enter()
    if request.session:find "t1/" then return "done" end
    async.sleep(60)
    return "done"
  end) }
  for group in run:groups() do
    lu.assertEquals(group.id, "t1")
    if group then break end
  end
  lu.assertEquals({ run.state, run.running, ended.now }, { "over", 0, 0 })
end

return M

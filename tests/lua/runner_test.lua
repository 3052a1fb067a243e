--- Runs of many rollouts: windows, attempts, groups, weights, and what a resumed run does.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local runner = require "agentbox.runner"
local tool = require "agentbox.tool"
local traj = require "agentbox.traj"

local M = {}

local function task(id, fields)
  local out = { task_id = id, description = "d", verifier = { type = "command", command = "true" } }
  for key, value in pairs(fields or {}) do out[key] = value end
  return out
end

local function tasks(n, fields)
  local list = {}
  for i = 1, n do list[i] = task("t" .. i, fields) end
  return list
end

local function done() return model.scripted { "done" } end

-- A run without sandboxes, unless something else is said.
local function start(opts)
  local all = { sandbox = { backend = "none" }, model = done(), retry_wait_s = 0, concurrency = 8 }
  for key, value in pairs(opts) do all[key] = value end
  return assert(runner.start(all))
end

local function gather(run)
  local list = {}
  for group in run:groups() do
    list[#list + 1] = group
    assert(run:ack(group))
  end
  return list
end

local function ids(groups)
  local list = {}
  for i, group in ipairs(groups) do list[i] = group.id end
  table.sort(list)
  return list
end

-- Counts how many are inside at once.
local function counter()
  local self = { now = 0, peak = 0, entered = 0 }
  function self.enter()
    self.now, self.entered = self.now + 1, self.entered + 1
    self.peak = math.max(self.peak, self.now)
    return setmetatable({}, { __close = function() self.now = self.now - 1 end })
  end
  return self
end

local function tmp()
  local dir = assert(fs.tmpdir "agentbox-runner-")
  return setmetatable({ path = dir }, { __close = function() assert(fs.remove(dir, true)) end })
end

local function by_slot(dir)
  local out = {}
  for t in traj.each(dir) do
    local group = t.line.group
    if json.type(group) == "raw" then group = group:decode() end
    local slot = ("%s/%d"):format(group.id, group.index)
    out[slot] = out[slot] or {}
    table.insert(out[slot], t)
  end
  return out
end

-- ---------------------------------------------------------------- limits

function M.test_B36_limits_are_kept_and_reached()
  local inside, judged, called = counter(), counter(), counter()
  local slow = tool.define {
    api = 1, name = "slow", description = "Waits.", parameters = { { "n", "integer", "any" } },
    run = function()
      local _ <close> = inside.enter()
      async.sleep(0.005)
      return "ok"
    end,
  }
  local asks = model.fn(function(request)
    local _ <close> = called.enter()
    async.sleep(0.001)
    if #request.messages > 4 then return "done" end
    return { tool_calls = { { name = "slow", arguments = { n = 1 } } } }
  end)
  local run <close> = start {
    tasks = tasks(40), model = asks, concurrency = 9, limits = { commands = 3, judges = 2, creating = 4 },
    tools = "custom", custom_tools = { slow },
    verifier = function()
      local _ <close> = judged.enter()
      async.sleep(0.002)
      return 1
    end,
  }
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.solved, sum.unscored }, { 40, 40, 0 })
  lu.assertEquals({ inside.peak, judged.peak, inside.entered }, { 3, 2, 80 })
  lu.assertEquals({ sum.peaks.rollouts.peak, sum.peaks.commands.peak, sum.peaks.judges.peak }, { 9, 3, 2 })
  lu.assertTrue(sum.peaks.creating.peak <= 4 and sum.peaks.creating.peak >= 1)
  lu.assertTrue(called.peak <= 9)
  lu.assertEquals(sum.peaks.model_calls.peak, called.peak)
end

function M.test_a_gate_survives_those_who_leave_the_queue()
  local gate = require "agentbox.async.gate".new(1)
  local first = gate:enter()
  local waiting = async.spawn(function()
    local _ <close> = gate:enter()
    async.sleep(60)
  end)
  async.yield()
  lu.assertEquals(gate.waiting, 1)
  first:release() -- lets it in, but it is cancelled before it runs
  waiting:cancel()
  waiting:join()
  lu.assertEquals({ gate.running, gate.waiting }, { 0, 0 })
  local again <close> = gate:enter() -- luacheck: ignore
  local _, problem = gate:enter(0.01)
  lu.assertEquals(problem.code, "timeout")
  lu.assertEquals({ gate.running, gate.waiting, gate.peak }, { 1, 0, 1 })
end

-- ---------------------------------------------------------------- attempts

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
  lu.assertNotNil(sum.failure:find "runner_test%.lua:%d+: no more", sum.failure)
  local ok, problem = pcall(gather, run)
  lu.assertEquals({ ok, problem.code }, { false, "defect" })
end

-- ---------------------------------------------------------------- groups

local function by_member(fn)
  return model.fn(function(request)
    local name, index = request.session:match "(%w+)/(%d+)"
    return fn(name, tonumber(index), request)
  end)
end

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
end

function M.test_a_groups_time_closes_it_with_what_is_there()
  local slow = by_member(function(_, index)
    if index > 1 then async.sleep(60) end
    return "done"
  end)
  local run <close> = start { tasks = tasks(1), n = 4, model = slow, group_timeout_s = 0.4 }
  local groups = gather(run)
  lu.assertEquals({ #groups, #groups[1].members, groups[1].partial, groups[1].why }, { 1, 2, true, "the group's 0.4 s were over" })
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

function M.test_a_lab_schedules_its_groups()
  local order = {}
  local run <close> = start { tasks = tasks(6), n = 2, concurrency = 1, lookahead = 6,
    schedule = function(ready)
      if #ready < 6 and not order[1] then return nil end
      local best = 1
      for i, group in ipairs(ready) do
        if group.begun then return i end
        if group.id > ready[best].id then best = i end
      end
      return best
    end,
    on_event = function(kind, fields)
      if kind == "group" then order[#order + 1] = fields.id end
    end }
  run:wait()
  lu.assertEquals(order, { "t6", "t5", "t4", "t3", "t2", "t1" })
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

function M.test_members_have_seeds_of_their_own_that_come_again()
  local function seeds()
    local out = {}
    local run <close> = start { tasks = tasks(2), n = 3, seed = 7, model = done(), prepare = function(_, slot)
      return { agent = function(ctx)
        out[slot.group .. "/" .. slot.index] = ctx.seed
        return "final_answer"
      end }
    end }
    run:wait()
    return out
  end
  local first, again, distinct = seeds(), seeds(), {}
  lu.assertEquals(first, again)
  local n = 0
  for _, seed in pairs(first) do
    lu.assertEquals(math.type(seed), "integer")
    n = n + (distinct[seed] and 0 or 1)
    distinct[seed] = true
  end
  lu.assertEquals(n, 6)
end

-- ---------------------------------------------------------------- weights

local function versions_of(t)
  local out = {}
  for call in t:calls() do out[#out + 1] = call.versions[1].v end
  return out
end

function M.test_every_call_has_the_version_of_the_moment_it_was_sent()
  local version, sent, run = 1, {}
  local asks = model.fn(function(request)
    table.insert(sent, version) -- before the wait: the weights may change meanwhile
    local mine = version
    async.sleep(0.002)
    if #request.messages > 10 then return "version " .. mine end
    return { content = "version " .. mine, tool_calls = { { name = "noop", arguments = {} } } }
  end)
  local noop = tool.define { api = 1, name = "noop", description = "Nothing.", parameters = {}, run = function() return "ok" end }
  run = start { tasks = tasks(12), n = 2, model = asks, policy = { version = 1 }, tools = "custom", custom_tools = { noop } }
  local _ <close> = run
  local clock = async.spawn(function()
    while run.state ~= "over" do
      async.sleep(0.01)
      version = version + 1
      run:policy { version = version }
    end
  end)
  local mixed, calls = 0, 0
  for group in run:groups() do
    for _, t in ipairs(assert(group:trajectories())) do
      local versions, i = versions_of(t), 0
      lu.assertEquals({ t.version_min, t.version_max }, { versions[1], versions[#versions] })
      if t.version_min < t.version_max then mixed = mixed + 1 end
      for _, message in ipairs(t.messages) do
        if message.role == "assistant" then
          i = i + 1
          lu.assertEquals(message.content, "version " .. versions[i])
        end
      end
      calls = calls + i
    end
    assert(run:ack(group))
  end
  clock:join()
  lu.assertEquals(calls, #sent)
  lu.assertTrue(mixed > 0, "no rollout saw two versions")
end

function M.test_rollouts_that_became_too_old_are_made_again()
  local hang, run = true
  local asks = model.fn(function()
    if hang then async.sleep(60) end
    return "done"
  end)
  run = start { tasks = tasks(3), n = 2, model = asks, policy = { version = 4 }, max_staleness = 1 }
  local _ <close> = run
  while run:stats().calls < 6 do async.sleep(0.005) end
  run:policy { version = 5 }
  lu.assertEquals(run.tally.stale, 0)
  hang = false
  run:policy { version = 6 }
  local n = 0
  for group in run:groups() do
    for _, t in ipairs(assert(group:trajectories())) do
      n = n + 1
      lu.assertEquals({ t.version_min, t.line.attempt, t.scored }, { 6, 1, true })
    end
    assert(run:ack(group))
  end
  lu.assertEquals({ n, run:wait().stale }, { 6, 6 })
end

function M.test_calls_in_flight_are_sent_again_for_new_weights()
  local sent, run = 0
  local asks = model.fn(function()
    sent = sent + 1
    if sent <= 4 then async.sleep(60) end
    return "done"
  end)
  run = start { tasks = tasks(4), model = asks, policy = { version = 1 }, inflight = "restart" }
  local _ <close> = run
  while sent < 4 do async.sleep(0.005) end
  run:policy { version = 2 }
  local sum = run:wait()
  lu.assertEquals({ sum.solved, sum.restarted_calls, sent, sum.attempts }, { 4, 4, 8, 4 })
end

function M.test_a_paused_run_sends_nothing_and_goes_on()
  local sent = 0
  local run <close> = start { tasks = tasks(30), concurrency = 3, model = model.fn(function()
    sent = sent + 1
    return "done"
  end) }
  while sent < 5 do async.sleep(0.001) end
  run:pause()
  async.sleep(0.05)
  local before = sent
  async.sleep(0.1)
  lu.assertEquals(sent, before)
  run:resume()
  lu.assertEquals(run:wait().solved, 30)
end

function M.test_roles_are_there_for_verifiers()
  local run <close> = assert(runner.start { sandbox = { backend = "none" }, tasks = tasks(2), models = { agent = done(), judge = model.fn(function() return "0.25" end) },
    verifier = function()
      local judge = assert(runner.model "judge")
      return tonumber(assert(judge:complete { messages = { { role = "user", content = "?" } } }).message.content)
    end })
  local sum = run:wait()
  lu.assertEquals({ sum.reward_mean, sum.scored }, { 0.25, 2 })
  lu.assertEquals(select(2, runner.model "judge").code, "config")
end

-- ---------------------------------------------------------------- going on

local function counting()
  local self = { calls = {} }
  self.model = model.fn(function(request)
    local place = request.session:match "[^/]+/(.+)"
    self.calls[#self.calls + 1] = place
    if self.stop_after and #self.calls >= self.stop_after then self.on_stop() end
    return "done"
  end)
  return self
end

function M.test_B97_B103_a_resumed_run_does_what_is_wanted_less_what_is_done()
  local dir <close> = tmp()
  local counted = counting()
  local function go(opts)
    local all = { tasks = tasks(12), model = counted.model, out = dir.path, run_id = "r", agentbox_json = false }
    for key, value in pairs(opts) do all[key] = value end
    local run <close> = start(all)
    return run:wait()
  end
  go { limit = 5 }
  lu.assertEquals(#counted.calls, 5)
  lu.assertEquals(go { limit = 8, resume = true }.kept, 5)
  lu.assertEquals(#counted.calls, 8)
  local sum = go { n = 3, resume = true, limit = 8 }
  lu.assertEquals({ sum.rollouts, sum.kept, sum.solved }, { 24, 8, 24 })
  go { n = 3, resume = true }
  lu.assertEquals(#counted.calls, 36)
  local seen = {}
  for _, place in ipairs(counted.calls) do
    lu.assertNil(seen[place], place)
    seen[place] = true
  end
  for _, list in pairs(by_slot(dir.path)) do lu.assertEquals(#list, 1) end
end

function M.test_B103_more_of_a_group_that_is_closed_is_a_group_of_its_own()
  local dir <close> = tmp()
  local counted = counting()
  local function go(n, resume)
    local run <close> = start { tasks = tasks(3), n = n, group_size = n, model = counted.model, out = dir.path, run_id = "r",
      resume = resume, agentbox_json = false }
    return ids(gather(run)), run:wait()
  end
  lu.assertEquals((go(2)), { "t1", "t2", "t3" })
  local more, sum = go(5, true)
  lu.assertEquals(more, { "t1+2", "t2+2", "t3+2" })
  lu.assertEquals({ sum.rollouts, sum.kept, #counted.calls }, { 15, 6, 15 })
  more, sum = go(5, true)
  lu.assertEquals({ more, sum.kept, #counted.calls }, { {}, 15, 15 })
  lu.assertEquals({ (go(4, true)), #counted.calls }, { {}, 15 }) -- fewer are there already
end

function M.test_B97_a_stopped_run_goes_on_and_delivers_once()
  local dir <close> = tmp()
  local counted = counting()
  local given = {}
  local function go(resume, stop_after)
    local run
    counted.stop_after = stop_after and #counted.calls + stop_after
    counted.on_stop = function() run:stop "test" end
    run = start { tasks = tasks(20), n = 3, model = counted.model, out = dir.path, run_id = "r", resume = resume,
      agentbox_json = false, concurrency = 4 }
    local _ <close> = run
    for group in run:groups() do
      given[#given + 1] = group.id
      lu.assertEquals(#assert(group:trajectories()), 3)
      assert(run:ack(group))
    end
    return run:wait()
  end
  go(false, 25)
  go(true, 10)
  go(true, 9)
  local sum = go(true)
  lu.assertEquals({ sum.rollouts, sum.solved, sum.groups.closed }, { 60, 60, 20 })
  table.sort(given)
  local wanted = {}
  for i = 1, 20 do wanted[i] = "t" .. i end
  table.sort(wanted)
  lu.assertEquals(given, wanted)
  for _, list in pairs(by_slot(dir.path)) do lu.assertEquals(#list, 1) end
end

function M.test_groups_that_nobody_acknowledged_come_again()
  local dir <close> = tmp()
  local function go(resume, acked)
    local run <close> = start { tasks = tasks(4), n = 2, out = dir.path, run_id = "r", resume = resume, agentbox_json = false,
      concurrency = 1 }
    local got = {}
    for group in run:groups() do
      got[#got + 1] = group.id
      if acked[group.id] then assert(run:ack(group)) end
    end
    return got
  end
  lu.assertEquals(go(false, { t1 = true, t3 = true }), { "t1", "t2", "t3", "t4" })
  lu.assertEquals(go(true, { t2 = true, t3 = true }), { "t2", "t3", "t4" }) -- t3 was acknowledged beyond a gap
  lu.assertEquals(go(true, {}), { "t4" })
end

function M.test_what_failed_in_all_attempts_stands_until_it_is_asked_for()
  local dir <close> = tmp()
  local broken = true
  local asks = by_member(function(name)
    if broken and name == "t2" then return nil, err.new("model", "HTTP 500") end
    return "done"
  end)
  local function go(opts)
    local all = { tasks = tasks(3), model = asks, out = dir.path, run_id = "r", agentbox_json = false, attempts = 2 }
    for key, value in pairs(opts) do all[key] = value end
    local run <close> = start(all)
    return run:wait()
  end
  lu.assertEquals({ go({}).unscored }, { 1 })
  broken = false
  local sum = go { resume = true }
  lu.assertEquals({ sum.unscored, sum.attempts }, { 1, 0 })
  sum = go { resume = true, retry_errors = true }
  lu.assertEquals({ sum.unscored, sum.attempts, sum.solved }, { 0, 1, 3 })
  lu.assertEquals(#by_slot(dir.path)["t2/0"], 3)
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

-- ---------------------------------------------------------------- what it is told

function M.test_options_are_checked_before_anything_starts()
  local function refused(opts)
    local all = { tasks = tasks(1), model = done() }
    for key, value in pairs(opts) do all[key] = value end
    local ok, run, problem = pcall(runner.start, all)
    lu.assertTrue(not ok or run == nil)
    return tostring(ok and problem.msg or run)
  end
  lu.assertStrContains(refused { concurency = 3 }, "concurency")
  lu.assertStrContains(refused { n = 6, group_size = 4 }, "not a multiple")
  lu.assertStrContains(refused { oversample = 2 }, "about groups")
  lu.assertStrContains(refused { tasks = "/nowhere" }, "/nowhere")
  lu.assertStrContains(refused { models = { agent = done() } }, "not both")
  lu.assertStrContains(refused { resume = true }, "resume needs")
  local _, problem = runner.start { tasks = tasks(1) }
  lu.assertStrContains(problem.msg, "no model")
  lu.assertEquals(json.encode(problem.code), '"config"')
end

return M

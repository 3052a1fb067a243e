--- Runs of many rollouts. What a resumed run does.
local err = require "agentbox.err"
local export = require "agentbox.export"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))

local M = {}

local tasks, start, gather, ids = runs.tasks, runs.start, runs.gather, runs.ids
local tmp, by_slot, by_member = runs.tmp, runs.by_slot, runs.by_member

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

-- Two attempts fail in the first process and one in the next: together they are too many, and what was given up stays so.
function M.test_a_task_is_given_up_across_processes()
  local dir <close> = tmp()
  local list = tasks(2)
  list[2] = runs.task("poison", { setup_commands = { "exit 3" } })
  local function go(limit, more)
    local told, failed = {}, 0
    local opts = { tasks = list, n = 8, group_size = 1, quarantine = 3, concurrency = 1, out = dir.path, run_id = "r",
      agentbox_json = false, resume = limit > 2, max_errors = 100 }
    for key, value in pairs(more or {}) do opts[key] = value end
    local run
    opts.on_event = function(kind, fields)
      if kind == "quarantine" then told[#told + 1] = fields.failures end
      if kind ~= "rollout" or fields.task_id ~= "poison" or not fields.segment then return end
      failed = failed + 1
      if failed == limit then run:drain() end
    end
    run = start(opts)
    local sum = run:wait()
    run:close()
    return told, failed, sum.quarantined
  end
  lu.assertEquals({ go(2) }, { {}, 2, {} })
  lu.assertEquals({ go(99) }, { { 3 }, 1, { "poison" } })
  lu.assertEquals({ go(99) }, { {}, 0, { "poison" } })
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

-- Which groups an export of the run has, by `art`, and whose rollouts are the best of each.
local function exported(dir)
  local sizes, best = {}, {}
  local result = assert(export.convert { input = dir .. "/r", format = "art", out = dir .. "/g.jsonl" })
  for line in io.lines(dir .. "/g.jsonl") do
    local group = json.decode(line)
    sizes[#sizes + 1] = ("%s: %d, %d"):format(group.metadata.group_id, #group.trajectories, #group.exceptions)
  end
  lu.assertEquals(#result.skipped, result.skipped[1] and 1 or 0) -- the one that is unscored
  assert(export.convert { input = dir .. "/r", format = "canonical", out = dir .. "/b.jsonl", filter = { best = 1 } })
  for line in io.lines(dir .. "/b.jsonl") do best[#best + 1] = json.decode(line).id:match "/(.*)/" end
  table.sort(sizes)
  table.sort(best)
  return sizes, best
end

-- Symptom: after `run-dir --resume RUN --n MORE` the best of a group were looked for among the added members too, and
-- these filled up what their closed group lacked.
function M.test_added_members_are_of_their_own_group_for_everybody()
  local dir <close> = tmp()
  local function go(n, resume)
    local asks = by_member(function(_, index)
      if index == 1 and n == 2 then return nil, err.new("model", "HTTP 500") end
      return "done"
    end)
    local run <close> = start { tasks = tasks(1), n = n, model = asks, out = dir.path, run_id = "r", resume = resume,
      agentbox_json = false, attempts = 1, min_group = 1, max_errors = 99 }
    return ids(gather(run))
  end
  lu.assertEquals({ go(2), go(4, true) }, { { "t1" }, { "t1+2" } })
  local sizes, best = exported(dir.path)
  lu.assertEquals(sizes, { "t1+2: 2, 0", "t1: 1, 1" })
  lu.assertEquals(best, { "t1", "t1+2" }) -- of those that are as good, either
end

-- Symptom: where a task is called as another one's later group, what was wanted of the other one counted as done.
function M.test_a_task_with_the_name_of_a_later_group_is_a_task_of_its_own()
  local dir <close> = tmp()
  local counted = counting()
  local list = { runs.task "t", runs.task "t+2", runs.task "t", runs.task "t#2" }
  local function go(n, resume)
    local run <close> = start { tasks = list, n = n, model = counted.model, out = dir.path, run_id = "r", resume = resume,
      agentbox_json = false }
    return ids(gather(run)), run:wait()
  end
  lu.assertEquals((go(2)), { "t", "t#2", "t#2#1", "t+2#1" })
  local more, sum = go(4, true)
  lu.assertEquals(more, { "t#2#1+2", "t#2+2", "t+2", "t+2#1+2" })
  lu.assertEquals({ sum.rollouts, sum.kept, #counted.calls }, { 16, 8, 16 })
end

-- One that was stopped in the middle of its group makes that whole; what more is wanted is the next one, in exports too.
function M.test_a_group_that_was_begun_keeps_its_size()
  local dir <close> = tmp()
  local function go(opts)
    local all = { tasks = tasks(1), out = dir.path, run_id = "r", agentbox_json = false, concurrency = 1 }
    for key, value in pairs(opts) do all[key] = value end
    local run
    all.on_event = function(kind)
      if kind == "rollout" and not opts.resume then run:stop "test" end
    end
    run = start(all)
    local _ <close> = run
    return ids(gather(run))
  end
  lu.assertEquals(go { n = 3 }, {})
  lu.assertEquals(go { n = 4, resume = true }, { "t1", "t1+3" })
  lu.assertEquals((exported(dir.path)), { "t1+3: 1, 0", "t1: 3, 0" })
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

return M

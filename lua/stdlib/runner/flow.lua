--- The three fibers that keep a run going: one reads tasks ahead, one starts members while there is room, one looks at the
--- clock. All of them live until the run is over, and members are started by the second one alone.
local busy = require "agentbox.runner.busy"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local groups = require "agentbox.runner.group"
local member = require "agentbox.runner.member"
local pool = require "agentbox.sandbox.pool"
local registry = require "agentbox.runner.registry"
local time = require "agentbox.time"
local traceback = require "agentbox.traceback"

local M = {}

local TICK_S, TELL_S = 0.25, 2

-- A failure of our own, or of the lab's code that the run calls: the run's end, with the place.
local function guarded(run, fn, ...)
  local function traced(problem)
    if err.is(problem) then return problem end
    return err.new("defect", tostring(problem), { traceback = traceback.text(problem) })
  end
  local ok, problem = xpcall(fn, traced, ...)
  if not ok then run:_fail(problem) end
end

-- ---------------------------------------------------------------- reading ahead

local function kept(before)
  return {
    id = before.id, scored = before.scored, reward = before.reward, final_status = before.final_status, stop = before.stop,
    class = before.class, segment = before.segment, offset = before.offset,
  }
end

-- Counts the members of a group that an earlier process closed. It is not opened again, nor larger.
local function count_closed(run, id, size)
  for index = 0, size - 1 do
    local before = run.before[("%s/%d"):format(id, index)]
    if before then run.tally:ended(kept(before), true) end
  end
end

-- Takes over what an earlier process of the run finished. False when nothing of the group is left to do.
local function restore(run, group)
  for _, one in ipairs(group.members) do
    local before = run.before[groups.slot(one)]
    if before then
      if run:_stands(before) then
        group:note(one, kept(before))
        run.tally:ended(one.result, true)
      else
        one.attempt = before.attempt + 1
      end
    end
  end
  if not group:complete() then return true end
  run:_close_group(group)
  return false
end

local function add_group(run, draft, from, size)
  local group = groups.new(draft, { size = size, from = from, surplus = run.opts.oversample, min = run.opts.min_group })
  if not restore(run, group) then return end
  if run:_gives_up(group) then return run:_skip(group) end
  table.insert(run.ahead, group)
  run:_poke()
end

-- A group keeps the size that it was begun with: its members' records tell it. What is wanted beyond is the next one's.
local function add(run, draft)
  local from = 0
  while from < draft.size do
    local id, rest = groups.name(draft.id, from), draft.size - from
    local closed = run.closed_before[id]
    local size = math.max(1, math.min(closed or run.begun_before[id] or rest, rest)) -- whatever a folder says
    if closed then count_closed(run, id, size) else add_group(run, draft, from, size) end
    from = from + size
  end
end

local function feed(run)
  while run.state == "running" and not run.source.ended do
    if #run.ahead >= run.opts.lookahead then
      run.feeder_parked = true
      fiber.park(1)
      run.feeder_parked = false
    else
      local draft, problem = run.source:next()
      if draft then
        add(run, draft)
      elseif problem then
        run:_bad_task(problem)
      end
    end
  end
  run:_poke()
end

-- ---------------------------------------------------------------- starting

local function may_open(run)
  local max = run.opts.max_lead
  return not max or run:_unacknowledged() < max
end

-- Which of the groups that could go on does: the first one, unless a policy of the lab chooses.
local function choose(run)
  local ready = {}
  for _, group in ipairs(run.open) do
    if group.idle > 0 then ready[#ready + 1] = group end
  end
  if not run.opts.schedule then
    if ready[1] or not may_open(run) then return ready[1] end
    return run.ahead[1]
  end
  if may_open(run) then table.move(run.ahead, 1, #run.ahead, #ready + 1, ready) end
  if #ready == 0 then return nil end
  local shown = {}
  for i, group in ipairs(ready) do
    shown[i] = { id = group.id, task = group.task, begun = group.began ~= nil, idle = group.idle, scored = group.scored }
  end
  local at = run.opts.schedule(shown, run:stats())
  if at == nil then return nil end
  if not ready[at] then error(("runner: schedule returned %s, there are %d groups"):format(tostring(at), #ready), 0) end
  return ready[at]
end

local function open(run, group)
  for i, one in ipairs(run.ahead) do
    if one == group then
      table.remove(run.ahead, i)
      table.insert(run.open, group)
      if run.feeder_parked then run.feeder:wake() end
      return
    end
  end
end

local at_end = { __close = function(self)
  local run, one = self[1], self[2]
  run.running = run.running - 1
  one.fiber, one.started = nil, nil
  if one.group.closed and not one.group:live() then run.closing[one.group] = nil end
  if one.state ~= "ended" then run:_left(one) end
  run:_poke()
end }

local function work(run, one)
  local ending <close> = setmetatable({ run, one }, at_end) -- luacheck: ignore
  one.started = true
  if not one.ending then guarded(run, member.run, run, one) end
end

local function fill(run)
  while run.state == "running" and not run.paused and run.running < run.opts.concurrency do
    local group = choose(run)
    if not group then return end
    open(run, group)
    local one = group:take()
    if not one then return end
    run.running = run.running + 1
    run.peak = math.max(run.peak, run.running)
    one.fiber = fiber.spawn(work, run, one)
  end
end

local function all_done(run) return run.source.ended and #run.ahead == 0 and #run.open == 0 end

local function over(run)
  if run.running > 0 or next(run.settling) then return false end
  return run.state ~= "running" or all_done(run)
end

local function settle_left(run)
  for one in pairs(run.left) do
    run.left[one] = nil
    run.settling[one] = true
    fiber.spawn(function()
      local _ <close> = setmetatable({}, { __close = function() -- luacheck: ignore
        run.settling[one] = nil
        run:_poke()
      end })
      guarded(run, run._settle, run, one)
    end)
  end
end

-- ---------------------------------------------------------------- the clock

-- Two limits: one that computes may take as long as `busy_factor` says, if that is longer.
local function stragglers(run, group, now)
  local rule, median = run.opts.straggler, group:median_s()
  if not rule or not median then return end
  local busy_factor = math.max(rule.factor, rule.busy_factor or 0)
  local idle_s, busy_s = math.max(rule.min_s, rule.factor * median), math.max(rule.min_s, busy_factor * median)
  for _, one in ipairs(group.members) do
    local took_s = one.state == "running" and one.began and now - one.began or 0
    if took_s > idle_s and (took_s > busy_s or not busy.computes(one, now)) then
      member.stop(one, "straggler", ("straggler: more than %.1f s, %g times the group's median"):format(
        took_s > busy_s and busy_s or idle_s, took_s > busy_s and busy_factor or rule.factor))
    end
  end
end

local function check_time(run)
  local now = time.monotonic()
  for _, group in ipairs(table.move(run.open, 1, #run.open, 1, {})) do
    stragglers(run, group, now)
    if run.opts.group_timeout_s and group.began and now - group.began > run.opts.group_timeout_s then
      run:_close_group(group, ("the group's %g s were over"):format(run.opts.group_timeout_s))
    end
  end
  if run.deadline and now > run.deadline and run.state == "running" then
    run:stop(("the run's %g s were over"):format(run.opts.run_timeout_s))
  end
end

local function watch(run)
  local told = 0
  while run.state ~= "over" do
    if run.run_dir and time.monotonic() - told > TELL_S then
      told = time.monotonic()
      registry.tell(run)
    end
    fiber.park(TICK_S)
    check_time(run)
  end
end

-- ---------------------------------------------------------------- together

-- A pool of ready sandboxes, which this fiber's members take from; nil when none was asked for.
local function pool_of(opts)
  local size = opts.sandbox and opts.sandbox.pool or 0
  if size == 0 then return nil end
  local made = pool.new { size = size }
  made:use()
  return made
end

--- The main fiber of a run: ends when the run is over.
---@async
---@param run agentbox.Run
function M.run(run)
  local finish <close> = setmetatable({}, { __close = function() run:_over() end }) -- luacheck: ignore
  local locals = fiber.current():locals()
  locals.scratch = run.store.scratch
  locals.scope, locals.models = false, run.models -- what members start belongs to the run, not to who started it
  run.limits:use()
  local ready <close> = pool_of(run.opts) -- luacheck: ignore
  run.feeder = fiber.spawn(guarded, run, feed, run)
  run.watcher = fiber.spawn(guarded, run, watch, run)
  while not over(run) do
    guarded(run, fill, run)
    settle_left(run)
    if over(run) then break end
    run.pump_parked = true
    if not run.poked then fiber.park() end
    run.pump_parked, run.poked = false, false
  end
  if run.state == "draining" and all_done(run) then run.why = nil end -- what it was to leave out was already done
end

return M

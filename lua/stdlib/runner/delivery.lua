--- How closed groups reach whoever trains on them: in the order in which they were closed, once, and again only if they
--- were not acknowledged before the run died.
local gate = require "agentbox.async.gate"
local groups = require "agentbox.runner.group"
local member = require "agentbox.runner.member"
local rank = require "agentbox.runner.rank"
local read = require "agentbox.store.read"

local M = { methods = {} }

---@class agentbox.RunGroup
---@field seq integer          # its number in the run
---@field id string
---@field task_id string
---@field size integer         # members that were wanted
---@field members string[]     # ids of the scored ones
---@field rewards number[]
---@field independent? number[]   # of a ranked group: what the members were given one by one
---@field ranking? table          # how it was ranked
---@field outcomes any[]       # what the verifier said, before any penalty
---@field partial boolean
---@field zero_signal boolean  # all outcomes are the same
---@field waste table          # what surplus members cost
local RunGroup = {}
RunGroup.__index = RunGroup

--- Its trajectories, read from the record.
---@async
---@return agentbox.Traj[]? trajectories
---@return agentbox.Err? err
function RunGroup:trajectories() return self:_trajectories() end

-- The same for who looks at a part of each record only (agentbox.Format's `reads`).
function RunGroup:_trajectories(reads)
  local list = {}
  for i, id in ipairs(self.members) do
    local place, problem = self.places and self.places[i], nil
    if place then
      list[i], problem = read.at(self._run.run_dir, place.segment, place.offset, reads)
    else
      list[i] = self._run.store:load(id)
    end
    if not list[i] then return nil, problem end
    if self.ranking and self.rewards then list[i]:with_reward(self.rewards[i], self.independent and self.independent[i]) end
  end
  return list
end

---@class agentbox.Run
local Run = M.methods

-- What an earlier process of this run left: finished members by slot, the sizes of closed groups, and those of groups that
-- were begun with another size than this process wants.
function Run:_recall()
  self.before, self.closed_before, self.begun_before, self.acknowledged = {}, {}, {}, {}
  self.cursor = self.store:cursor()
  self.delivered = self.cursor
  self.closed = select(2, self.store:cursor())
  for _, seq in ipairs(self.store:ahead()) do self.acknowledged[seq] = true end
  self.acking = gate.new(1)
  if not self.opts.resume then return end
  self.before = self.store:finished(function(row)
    if row.group_size and row.group_size ~= self.opts.size then self.begun_before[row.grp] = row.group_size end
    self:_suspected(row)
  end)
  for facts in self.store:groups(0) do
    self.size_before = facts.from + facts.size
    self.closed_before[facts.id] = facts.size
    self.tally:group(facts)
    if facts.dropped then self.acknowledged[facts.seq] = true end
  end
end

-- Groups that are closed and neither acknowledged nor dropped.
function Run:_unacknowledged()
  local n = self.closed - self.cursor
  for _ in pairs(self.ranking) do n = n + 1 end -- they will be closed
  for seq in pairs(self.acknowledged) do
    if seq > self.cursor then n = n - 1 end
  end
  return n
end

local function remove(list, value)
  for i, one in ipairs(list) do
    if one == value then return table.remove(list, i) end
  end
end

-- Members without a place in the group are stopped; they are the price of not waiting.
local function stop_rest(self, group, why)
  self.closing[group] = group:live() or nil
  for _, one in ipairs(group:unfinished()) do
    member.stop(one, why and "late" or "surplus", why or "the group has enough members")
  end
end

--- Closes a group: records it and lets the consumer know; with `rank`, once its members have been compared.
---@async
---@param group agentbox.Group_
---@param why? string
function Run:_close_group(group, why)
  if group.closed then return end
  local facts, list = group:close(why)
  remove(self.open, group)
  stop_rest(self, group, why)
  if self.opts.grouping then
    facts.places = {}
    for i, one in ipairs(list) do
      local result = one.result
      facts.places[i] = { segment = result.segment, offset = result.offset }
    end
    if not list[1] or not list[1].result.segment then facts.places = nil end
    if self.opts.rank and #list > 0 and not facts.dropped then
      rank.spawn(self, group, function() self:_rank(facts, why) end)
    else
      self:_keep_group(facts, why)
    end
  end
  group.task = nil
  self:_poke()
end

-- Compares the members of a group that is closed otherwise, and writes it down.
function Run:_rank(facts, why)
  local list, problem = setmetatable({ members = facts.members, places = facts.places, _run = self }, RunGroup):trajectories()
  if not list then return self:_fail(problem) end
  rank.apply(self.opts.rank, facts, list)
  self:_keep_group(facts, why)
end

-- Writes a group down and lets the consumer know.
function Run:_keep_group(facts, why)
  local seq, problem = self.store:group(facts)
  if not seq then return self:_fail(problem) end
  facts.seq, self.closed = seq, math.max(self.closed, seq)
  self.tally:group(facts)
  if facts.dropped then self:_acknowledge(seq, true) end
  self:_event("group", {
    seq = seq, id = facts.id, task_id = facts.task_id, scored = #facts.members, size = facts.size, partial = facts.partial,
    dropped = facts.dropped, zero_signal = facts.zero_signal, why = why, evicted = facts.evicted,
    ranked = facts.ranking and not facts.ranking.error or nil,
  })
  self:_poke()
end

-- Those beyond the cursor that were acknowledged, in order.
local function ahead_of(self, to)
  local list = {}
  for seq in pairs(self.acknowledged) do
    if seq > to then list[#list + 1] = seq end
  end
  table.sort(list)
  return list
end

--- Moves the cursor over all groups without a gap, and notes those beyond; one write after another, or the last one would
--- not be the latest. That a group was dropped is known without it.
function Run:_acknowledge(seq, dropped)
  if seq <= self.cursor then return true end
  self.acknowledged[seq], self.unsaved = true, self.unsaved or not dropped
  local turn <close> = self.acking:enter() -- luacheck: ignore 211
  local to = self.cursor
  while self.acknowledged[to + 1] do to = to + 1 end
  if to == self.cursor and not self.unsaved then return true end
  self.unsaved = false
  local ok, problem = self.store:ack(to, ahead_of(self, to))
  if not ok then
    self.unsaved = true
    return nil, problem
  end
  self.cursor = to
  for one in pairs(self.acknowledged) do
    if one <= to then self.acknowledged[one] = nil end
  end
  return true
end

--- Says that a group has been used: no resumed run delivers it again, and its place in `max_lead` is free.
---@async
---@param group agentbox.RunGroup
---@return boolean? ok
---@return agentbox.Err? err
function Run:ack(group)
  local ok, problem = self:_acknowledge(group.seq)
  self:_poke()
  return ok, problem
end

local function next_group(self)
  self.reading = self.reading or self.store:groups(self.delivered)
  for facts in self.reading do
    self.delivered = facts.seq
    if not facts.dropped and not self.acknowledged[facts.seq] then
      facts._run = self
      return setmetatable(facts, RunGroup)
    end
  end
  self.reading = nil -- at the end for now
end

--- The groups of the run as they are closed: `for group in run:groups() do`. Leaving the loop stops the run and waits.
---
--- Raises what broke the run, when something did.
---@async
---@return fun(): agentbox.RunGroup?
---@return nil
---@return nil
---@return agentbox.Run
function Run:groups()
  if not self.opts.grouping then error("run:groups: the run has no groups: give group_size or n", 2) end
  local function step()
    while true do
      local group = next_group(self)
      if group then return group end
      if self.state == "over" then
        if self.failure then error(self.failure, 0) end
        return nil
      end
      self:_await()
    end
  end
  return step, nil, nil, self
end

--- The groups with a number above `after` that are closed by now and not acknowledged, in order.
---@param after integer
---@return fun(): agentbox.RunGroup?
function Run:_waiting(after)
  local each = self.store:groups(math.max(after, self.cursor))
  return function()
    for facts in each do
      if not facts.dropped and not self.acknowledged[facts.seq] then
        facts._run = self
        return setmetatable(facts, RunGroup)
      end
    end
  end
end

--- A group by its number, whether or not it was acknowledged; nil when there is none, or it was dropped.
---@param seq integer
---@return agentbox.RunGroup?
function Run:_group(seq)
  local facts = self.store:groups(seq - 1)()
  if not facts or facts.seq ~= seq or facts.dropped then return nil end
  facts._run = self
  return setmetatable(facts, RunGroup)
end

--- Opens the run's door for a trainer: see `agentbox.serve`.
---@param opts agentbox.ServeOptions
---@return agentbox.Serve?
---@return agentbox.Err? err
function Run:serve(opts)
  return require "agentbox.serve".open(self, opts)
end

M.slot = groups.slot

return M

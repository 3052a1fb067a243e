--- One group: several rollouts of one task, until enough of them are there or no more will come.
---
--- A group is closed once `size` of its members are scored; by then it may have surplus members (oversampling), which are
--- stopped. It is closed with fewer when every member has ended, when its time is over, or when its stragglers were given
--- up. With fewer scored members than `min` it is dropped; that is an end like any other.
local time = require "agentbox.time"

local M = {}

---@class agentbox.Member
---@field group agentbox.Group_
---@field index integer       # from 0
---@field attempt integer     # from 0
---@field seed? integer
---@field state "idle"|"waiting"|"running"|"ended"
---@field look? table   # at its sandbox's CPU time, the last one
---@field began? number       # of the running attempt, monotonic
---@field result? table       # what was kept of its trajectory

---@class agentbox.Group_
---@field id string
---@field task agentbox.Task?
---@field size integer        # how many scored members close it
---@field members agentbox.Member[]   # with the surplus
---@field closed boolean
---@field of string           # the id of the first group of its task's turn: another one when a resumed run wants more of that
---@field from integer        # how many members the groups of `of` before it have
local Group = {}
Group.__index = Group

--- The id of the group that has the members beyond the first `from` ones: what a resumed run adds to a group that was begun
--- is a group of its own. Everything that speaks of groups, the record of each member too, knows it by this id.
---@param id string
---@param from integer
---@return string
function M.name(id, from)
  return from > 0 and ("%s+%d"):format(id, from) or id
end

--- A group of `size` members and `surplus` more, the first or a later one of a draft's.
---@param draft agentbox.Draft
---@param opts { size: integer, from: integer, surplus: integer, min: integer }
---@return agentbox.Group_
function M.new(draft, opts)
  local size = opts.size
  local self = setmetatable({
    id = M.name(draft.id, opts.from), of = draft.id, from = opts.from, task = draft.task, task_id = draft.task.task_id, size = size,
    min = math.min(opts.min, size), members = {}, closed = false, idle = 0, ended = 0, scored = 0, durations = {}, evicted = {},
  }, Group)
  for index = 0, size + opts.surplus - 1 do
    self.members[index + 1] = { group = self, index = index, attempt = 0, state = "idle" }
    self.idle = self.idle + 1
  end
  return self
end

--- The name of a member's place in the run.
---@param member agentbox.Member
---@return string
function M.slot(member)
  return ("%s/%d"):format(member.group.id, member.index)
end

--- The next member that has not begun.
---@return agentbox.Member?
function Group:take()
  if self.closed or self.idle == 0 then return nil end
  for _, member in ipairs(self.members) do
    if member.state == "idle" then
      member.state = "waiting"
      self.idle = self.idle - 1
      self.began = self.began or time.monotonic()
      return member
    end
  end
end

--- Notes that a member has ended for good.
---@param member agentbox.Member
---@param result table
function Group:note(member, result)
  if member.state == "idle" then self.idle = self.idle - 1 end
  member.state, member.result = "ended", result
  self.ended = self.ended + 1
  if result.scored then
    self.scored = self.scored + 1
    if result.duration_s then self.durations[#self.durations + 1] = result.duration_s end
  end
end

--- Whether it is time to close it.
---@return boolean
function Group:complete()
  return not self.closed and (self.scored >= self.size or self.ended == #self.members)
end

--- The middle of what the finished members took; nothing before half of the group is there.
---@return number? seconds
function Group:median_s()
  local n = #self.durations
  if n == 0 or n * 2 < self.size then return nil end
  table.sort(self.durations)
  return (self.durations[(n + 1) // 2] + self.durations[n // 2 + 1]) / 2
end

--- The members that run now, or wait to begin.
---@return agentbox.Member[]
function Group:unfinished()
  local out = {}
  for _, member in ipairs(self.members) do
    if member.state ~= "ended" then out[#out + 1] = member end
  end
  return out
end

--- Is any of its members' fibers there?
---@return boolean
function Group:live()
  for _, member in ipairs(self.members) do
    if member.fiber then return true end
  end
  return false
end

-- The members that a closed group is made of: scored ones, in the order of their places.
local function chosen(self)
  local list = {}
  for _, member in ipairs(self.members) do
    local result = member.result
    if result and result.scored and #list < self.size then list[#list + 1] = member end
  end
  return list
end

-- All raw outcomes are exactly the same: nothing to be learnt from comparing them. A group of one is not compared.
local function without_signal(list)
  if #list < 2 then return false end
  local function raw(member)
    local result = member.result
    if result.outcome ~= nil then return result.outcome end
    return result.reward
  end
  for i = 2, #list do
    if raw(list[i]) ~= raw(list[1]) then return false end
  end
  return true
end

local function spent(members)
  local waste = { rollouts = 0, steps = 0, tokens = 0, seconds = 0 }
  for _, member in ipairs(members) do
    local result = member.result or {}
    waste.rollouts = waste.rollouts + 1
    waste.steps = waste.steps + (result.steps or 0)
    waste.tokens = waste.tokens + (result.tokens or 0)
    waste.seconds = waste.seconds + (result.duration_s or member.began and time.monotonic() - member.began or 0)
  end
  return waste
end

-- The oldest and the newest weights that its members were sampled with; nothing when one does not know.
local function versions(list)
  local least, most
  for _, member in ipairs(list) do
    local low, high = member.result.version_min, member.result.version_max
    if not low then return nil end
    least, most = math.min(least or low, low), math.max(most or high, high)
  end
  return least, most
end

local function dropped_because(self, list)
  if #list >= self.min then return nil end
  return ("%d of %d members are scored, at least %d are wanted"):format(#list, self.size, self.min)
end

--- Closes it: what the store keeps of it, and what is delivered.
---@param why? string     # what ended it before its time
---@return table facts
function Group:close(why)
  self.closed = true
  local list = chosen(self)
  local taken, members, rewards, outcomes = {}, {}, {}, {}
  for i, member in ipairs(list) do
    taken[member] = true
    members[i], rewards[i] = member.result.id, member.result.reward
    outcomes[i] = member.result.outcome or member.result.reward
  end
  local surplus = {}
  for _, member in ipairs(self.members) do
    local begun = member.state ~= "idle" or member.result
    if begun and not taken[member] and (not member.result or member.result.scored) then surplus[#surplus + 1] = member end
  end
  local oldest, newest = versions(list)
  return {
    version_min = oldest, version_max = newest,
    id = self.id, of = self.of, from = self.from,
    task_id = self.task_id, size = self.size, members = members, rewards = rewards, outcomes = outcomes,
    partial = #list < self.size, dropped = dropped_because(self, list), zero_signal = without_signal(list), why = why,
    waste = spent(surplus), evicted = #self.evicted > 0 and self.evicted or nil,
  }, list
end

return M

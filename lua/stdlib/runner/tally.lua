--- What a run has done so far, in numbers that do not grow with it.
local sketch = require "agentbox.store.sketch"
local time = require "agentbox.time"

local M = {}

local WINDOW_S = 60

--- Upper bounds of the histogram of durations, in seconds.
M.BOUNDS = { 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600 }

---@class agentbox.Tally
---@field rollouts integer      # members that ended for good
---@field attempts integer      # attempts that ended
local Tally = {}
Tally.__index = Tally

---@return agentbox.Tally
function M.new()
  return setmetatable({
    began = time.monotonic(), rollouts = 0, attempts = 0, solved = 0, scored = 0, unscored = 0, reward_sum = 0,
    steps = 0, tokens = 0, retries = 0, kept = 0, stale = 0, stale_groups = 0, evicted = 0,
    by_status = {}, by_class = {}, by_stop = {}, failed_attempts = {}, groups = {
      closed = 0, whole = 0, partial = 0, dropped = 0, zero_signal = 0,
    },
    waste = { rollouts = 0, steps = 0, tokens = 0, seconds = 0 }, quarantined = {}, bad_tasks = 0,
    duration_s = 0.0, _durations = sketch.new(), _within = {}, _seconds = {}, _streak = 0,
  }, Tally)
end

local function count(map, key)
  if key == nil then return end
  map[key] = (map[key] or 0) + 1
end

--- An attempt has ended, whether or not another follows.
---@param result table
---@param again boolean
function Tally:attempt(result, again)
  self.attempts = self.attempts + 1
  self.steps, self.tokens = self.steps + (result.steps or 0), self.tokens + (result.tokens or 0)
  if result.scored then self._streak = 0 else self._streak = self._streak + 1 end
  if not again then return end
  self.retries = self.retries + 1
  count(self.failed_attempts, result.class or "engine")
end

--- A member has ended for good; `kept` when an earlier process of the run did it.
---@param result table
---@param kept? boolean
function Tally:ended(result, kept)
  self.rollouts = self.rollouts + 1
  if kept then self.kept = self.kept + 1 end
  count(self.by_status, result.final_status or "error")
  count(self.by_stop, result.stop)
  if result.final_status == "success" then self.solved = self.solved + 1 end
  if result.scored then
    self.scored = self.scored + 1
    self.reward_sum = self.reward_sum + (result.reward or 0)
  else
    self.unscored = self.unscored + 1
    count(self.by_class, result.class or "engine")
    if result.evicted then self.evicted = self.evicted + 1 end
  end
  if kept then return end
  if result.duration_s then
    self._durations:add(result.duration_s)
    self.duration_s = self._durations.sum
    for i, bound in ipairs(M.BOUNDS) do
      if result.duration_s <= bound then count(self._within, i) end
    end
  end
  local second = time.monotonic() // 1
  if not self._seconds[second] then -- the last minute is all that is asked for
    for old in pairs(self._seconds) do
      if old < second - WINDOW_S then self._seconds[old] = nil end
    end
  end
  count(self._seconds, second)
end

--- Attempts in a row, up to now, that gave no score.
---@return integer
function Tally:streak() return self._streak end

---@param facts table   # of a group that was closed
function Tally:group(facts)
  local groups = self.groups
  groups.closed = groups.closed + 1
  local kind = facts.dropped and "dropped" or facts.partial and "partial" or "whole"
  groups[kind] = groups[kind] + 1
  if facts.zero_signal then groups.zero_signal = groups.zero_signal + 1 end
  for name, value in pairs(facts.waste) do self.waste[name] = self.waste[name] + value end
end

--- Rollouts a second over the last minute.
---@return number
function Tally:rate()
  local now, sum = time.monotonic(), 0
  for second = now // 1 - WINDOW_S + 1, now // 1 do sum = sum + (self._seconds[second] or 0) end
  return sum / math.max(1, math.min(WINDOW_S, now - self.began))
end

--- The duration that a share `p` of the rollouts did not exceed.
---@param p number
---@return number? seconds
function Tally:percentile(p) return self._durations:quantile(p) end

--- How many took at most each of `BOUNDS`, and how many there were.
---@return integer[] within
---@return integer n
function Tally:histogram()
  local within = {}
  for i = 1, #M.BOUNDS do within[i] = self._within[i] or 0 end
  return within, self._durations.n
end

--- A copy of the numbers.
---@return table
function Tally:numbers()
  local out = {}
  for key, value in pairs(self) do
    if key:sub(1, 1) ~= "_" then
      if type(value) == "table" then
        local copy = {}
        for name, one in pairs(value) do copy[name] = one end
        value = copy
      end
      out[key] = value
    end
  end
  out.wall_s, out.began = time.monotonic() - self.began, nil
  out.p50_s, out.p90_s, out.p99_s = self:percentile(0.5), self:percentile(0.9), self:percentile(0.99)
  return out
end

return M

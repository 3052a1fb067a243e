--- A budget a minute: so many requests, so many tokens. What is taken comes back evenly; what was taken in excess (a reply
--- that was longer than expected) is waited for by those who come next.
local time = require "agentbox.time"

local M = {}

--- How much may be taken at once before it is waited for, in seconds of the budget.
local BURST_S = 1

---@class agentbox.Rate
local Rate = {}
Rate.__index = Rate

---@param per_minute number
---@return agentbox.Rate
function M.new(per_minute)
  local per_s = per_minute / 60
  return setmetatable({ _per_s = per_s, _room = math.max(1, per_s * BURST_S), _level = math.max(1, per_s * BURST_S),
    _at = time.monotonic() }, Rate)
end

local function refill(self)
  local now = time.monotonic()
  self._level = math.min(self._room, self._level + (now - self._at) * self._per_s)
  self._at = now
end

--- Seconds until something may be taken; 0: now. Whoever takes it may overdraw.
---@return number
function Rate:wait_s()
  refill(self)
  if self._level > 0 then return 0 end
  return -self._level / self._per_s + 0.001
end

---@param amount number   # less than 0 gives back
function Rate:take(amount)
  refill(self)
  self._level = math.min(self._room, self._level - amount)
end

return M

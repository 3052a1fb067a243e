--- generate/spend.lua: what a pipeline may spend on models: calls, tokens, money.
---
--- A call's tokens are known only when it ends. Until then it counts with all it may take, so that a cap is never passed:
--- who would pass it waits for the calls that run, and when none runs the cap is reached.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"

local M = {}

---@class agentbox.Spend
---@field calls integer
---@field tokens integer
---@field cost number        # by the prices given, per million tokens
local Spend = {}
Spend.__index = Spend

---@param caps { calls?: integer, tokens?: integer, cost?: number }
---@param prices? { prompt?: number, completion?: number }   # of a million tokens
---@param before? { calls?: integer, tokens?: integer, cost?: number }   # spent by earlier runs
---@return agentbox.Spend
function M.new(caps, prices, before)
  before = before or {}
  return setmetatable({ calls = before.calls or 0, tokens = before.tokens or 0, cost = before.cost or 0, _caps = caps,
    _prices = prices or {}, _held = { calls = 0, tokens = 0, cost = 0 }, _waiting = {} }, Spend)
end

-- The first cap that would be passed by so much more.
function Spend:_passed(more)
  for _, name in ipairs { "calls", "tokens", "cost" } do
    local cap = self._caps[name]
    if cap and self[name] + self._held[name] + more[name] > cap then return name, cap end
  end
end

function Spend:_hold(more, sign)
  for name, value in pairs(more) do self._held[name] = self._held[name] + sign * value end
end

local function cost_of(self, prompt, completion)
  return ((self._prices.prompt or 0) * prompt + (self._prices.completion or 0) * completion) / 1e6
end

--- Calls fn when a call that takes up to so many tokens may be made.
---@async
---@param prompt integer        # tokens, at most
---@param completion integer
---@param fn fun(): any, any    # the second result is the response, or an error
---@return any
---@return any
---@return any
function Spend:call(prompt, completion, fn)
  local more = { calls = 1, tokens = prompt + completion, cost = cost_of(self, prompt, completion) }
  local name, cap = self:_passed(more)
  while name do
    if self._held.calls == 0 then
      return nil, err.new("limit", ("the cap of %g on %s is reached"):format(cap, name), { cap = name })
    end
    self._waiting[#self._waiting + 1] = fiber.current()
    fiber.park()
    name, cap = self:_passed(more)
  end
  self:_hold(more, 1)
  local _ <close> = setmetatable({}, { __close = function()
    self:_hold(more, -1)
    local waiting = self._waiting
    self._waiting = {}
    for _, one in ipairs(waiting) do one:wake() end
  end })
  self.calls = self.calls + 1
  local value, response, extra = fn()
  local usage = type(response) == "table" and response.usage
  if usage then
    self.tokens = self.tokens + usage.total
    self.cost = self.cost + cost_of(self, usage.prompt, usage.completion)
  elseif value ~= nil then -- a server that does not say: all that it may have been
    self.tokens, self.cost = self.tokens + more.tokens, self.cost + more.cost
  end
  return value, response, extra
end

--- The sums, for the journal.
---@return { calls: integer, tokens: integer, cost: number }
function Spend:sums() return { calls = self.calls, tokens = self.tokens, cost = self.cost } end

return M

--- A gate lets so many in at once; the others wait in order. How many that is may change while they wait.
---
---     local pass <close> = gate:enter()
---
--- A gate without a limit lets everybody in and counts them all the same.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local time = require "agentbox.sys.time"

local M = {}

---@class agentbox.Gate
---@field max number        # math.huge: no limit
---@field running integer   # inside now
---@field waiting integer
---@field peak integer      # the most that were inside at once
---@field entered integer   # since it was made
local Gate = {}
Gate.__index = Gate

---@class agentbox.Pass
local Pass = {}
Pass.__index = Pass

--- Leaves. May be called twice; leaving a <close> scope does it too.
function Pass:release()
  local gate = self._gate
  self._gate = nil
  if gate then gate:_leave() end
end
Pass.__close = Pass.release

local function count_in(gate)
  gate.running, gate.entered = gate.running + 1, gate.entered + 1
  if gate.running > gate.peak then gate.peak = gate.running end
end

-- Lets in whoever waits, as far as there is room. A place counts from here on, not from when its fiber runs.
local function admit(gate)
  while gate.running < gate.max and gate._first <= gate._last do
    local place = gate._queue[gate._first]
    gate._queue[gate._first] = nil
    gate._first = gate._first + 1
    if place.fiber then
      gate.waiting = gate.waiting - 1
      place.granted = true
      count_in(gate)
      place.fiber:wake()
    end
  end
end

-- A wait ends: with a pass, by a timeout, or because the fiber was cancelled, perhaps just after it was let in.
local place_meta = { __close = function(place)
  place.fiber = nil
  if not place.granted then
    place.gate.waiting = place.gate.waiting - 1
  elseif not place.taken then
    place.gate:_leave()
  end
end }

local function wait(gate, timeout_s)
  local place <close> = setmetatable({ gate = gate, fiber = fiber.current() }, place_meta)
  gate._last = gate._last + 1
  gate._queue[gate._last] = place
  gate.waiting = gate.waiting + 1
  local deadline = timeout_s and time.monotonic() + timeout_s
  while not place.granted do
    local left = deadline and deadline - time.monotonic()
    if left and left <= 0 then return false end
    fiber.park(left)
  end
  place.taken = true
  return true
end

function Gate:_leave()
  self.running = self.running - 1
  admit(self)
  if self.running > 0 or self.waiting > 0 then return end
  for idler in pairs(self._idlers) do idler:wake() end
end

local idle_meta = { __close = function(idle) idle.gate._idlers[idle.fiber] = nil end }

--- Waits until nobody is inside or waits for room: for what can be done at any other time as well.
---@async
function Gate:wait_empty()
  while self.running > 0 or self.waiting > 0 do
    local idle <close> = setmetatable({ gate = self, fiber = fiber.current() }, idle_meta)
    self._idlers[idle.fiber] = true
    fiber.park()
  end
end

--- Waits until there is room: `local pass <close> = gate:enter()`.
---@async
---@param timeout_s? number
---@return agentbox.Pass? pass
---@return agentbox.Err? err   # code `timeout`
function Gate:enter(timeout_s)
  if self.running < self.max and self.waiting == 0 then
    count_in(self)
  elseif not wait(self, timeout_s) then
    return nil, err.new("timeout", ("no room within %g s: %d inside"):format(timeout_s, self.running))
  end
  return setmetatable({ _gate = self }, Pass)
end

--- Changes how many may be inside. Those who are stay; when there are too many, nobody else comes in for a while.
---@param max number
function Gate:resize(max)
  self.max = max
  admit(self)
end

--- A gate for `max` at once; without a number for everybody.
---@param max? number
---@return agentbox.Gate
function M.new(max)
  return setmetatable({
    max = max or math.huge, running = 0, waiting = 0, peak = 0, entered = 0, _queue = {}, _first = 1, _last = 0,
    _idlers = {},
  }, Gate)
end

return M

--- Semaphores and channels: queues of parked fibers. Scripts reach them as async.semaphore and async.channel.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"

local M = {}

-- A place in a queue is left when the wait ends, however it ends: the fiber may wait elsewhere later.
local place = { __close = function(self) self.fiber = nil end }

-- Wakes the first fiber that still waits; false when there is none.
local function wake_first(queue, ...)
  while queue.first <= queue.last do
    local waiting = queue[queue.first]
    queue[queue.first] = nil
    queue.first = queue.first + 1
    if waiting.fiber and waiting.fiber:wake(...) then return true end
  end
  return false
end

-- Waits in the queue; what wake_first passed, or nothing after the timeout.
local function wait_in(queue, timeout_s)
  local mine <close> = setmetatable({ fiber = fiber.current() }, place)
  queue.last = queue.last + 1
  queue[queue.last] = mine
  return fiber.park(timeout_s)
end

local function new_queue()
  return { first = 1, last = 0 }
end

---@class agentbox.Semaphore
---@field private _free integer
---@field private _queue table
local Semaphore = {}
Semaphore.__index = Semaphore

---@class agentbox.Permit
local Permit = {}
Permit.__index = Permit

---Lets the next one in. May be called twice; leaving a <close> scope does it too.
function Permit:release()
  local sem = self._sem
  self._sem = nil
  if sem and not wake_first(sem._queue, true) then sem._free = sem._free + 1 end
end
Permit.__close = Permit.release

---Waits for a permit: `local permit <close> = sem:acquire()`.
---@async
---@param timeout_s? number
---@return agentbox.Permit? permit
---@return agentbox.Err? err   # code `timeout`
function Semaphore:acquire(timeout_s)
  if self._free > 0 then
    self._free = self._free - 1
  elseif not wait_in(self._queue, timeout_s) then
    return nil, err.new("timeout", ("no permit within %g s"):format(timeout_s))
  end
  return setmetatable({ _sem = self }, Permit)
end

---How many permits are free.
---@return integer
function Semaphore:free()
  return self._free
end

---@param permits integer
---@return agentbox.Semaphore
function M.semaphore(permits)
  if math.type(permits) ~= "integer" or permits < 1 then error("a positive integer expected", 3) end
  return setmetatable({ _free = permits, _queue = new_queue() }, Semaphore)
end

---@class agentbox.Channel
---@field private _items table
---@field private _room integer
---@field private _closed boolean
local Channel = {}
Channel.__index = Channel

---Sends a value (not nil); waits while the buffer is full.
---@async
---@param value any
---@return true? ok
---@return agentbox.Err? err   # code `cancelled` when the channel is closed
function Channel:send(value)
  if value == nil then error("nil cannot be sent", 2) end
  while not self._closed do
    if wake_first(self._readers, value) then return true end
    if self._n < self._room then
      self._n = self._n + 1
      self._items[self._head + self._n] = value
      return true
    end
    wait_in(self._writers)
  end
  return nil, err.new("cancelled", "the channel is closed")
end

---The next value; nil when the channel is closed and empty, or after the timeout.
---@async
---@param timeout_s? number
---@return any value
function Channel:receive(timeout_s)
  if self._n > 0 then
    self._head, self._n = self._head + 1, self._n - 1
    local value = self._items[self._head]
    self._items[self._head] = nil
    wake_first(self._writers, true)
    return value
  end
  if self._closed then return nil end
  return (wait_in(self._readers, timeout_s))
end

---`for value in channel:each() do`
---@async
---@return fun(): any
function Channel:each()
  return function() return self:receive() end
end

---No more sends; readers get what is buffered, then nil. May be called twice.
function Channel:close()
  self._closed = true
  while wake_first(self._readers) do end
  while wake_first(self._writers, true) do end
end

---A queue between fibers that holds up to `room` values.
---@param room? integer   # 1 unless given
---@return agentbox.Channel
function M.channel(room)
  room = room or 1
  if math.type(room) ~= "integer" or room < 1 then error("a positive integer expected", 3) end
  return setmetatable({
    _items = {}, _head = 0, _n = 0, _room = room, _closed = false,
    _readers = new_queue(), _writers = new_queue(),
  }, Channel)
end

return M

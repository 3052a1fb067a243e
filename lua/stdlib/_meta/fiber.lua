---@meta agentbox.sys.fiber

--- A coroutine on the loop. Private: scripts use agentbox.async.
---@class agentbox.Fiber
local Fiber = {}

--- Raises once where the fiber waits, or at its next slice when it is busy; then its <close> handlers have five
--- seconds. false when it is dead or was cancelled before.
---@param reason? agentbox.Err   # raised in the fiber; `cancelled` unless given
---@return boolean fresh
function Fiber:cancel(reason) end

--- Waits for the end: true and the results, false and the error, or nothing after the timeout. The error of a
--- cancelled fiber has no `cancel` here: it concerns that fiber alone.
---@async
---@param timeout_s? number
---@return boolean? ok
---@return any ...
function Fiber:join(timeout_s) end

---@return "running"|"ready"|"waiting"|"done"|"failed"
function Fiber:status() end

--- Has it been cancelled, by whomever?
---@return boolean
function Fiber:cancelled() end

--- Was it cancelled by its own deadline?
---@return boolean
function Fiber:expired() end

--- Makes its `park` return the values. false when it is not parked; then nothing is kept.
---@param ... any
---@return boolean delivered
function Fiber:wake(...) end

--- A time of agentbox.time.monotonic at which the fiber is cancelled with code `timeout`; nil for none.
---@param monotonic_s number?
function Fiber:set_deadline(monotonic_s) end

--- Its first turn now, inside of the caller's, if there is time for it.
---@return boolean ended
function Fiber:begin() end

--- Ceilings for the fiber and the children that it starts from now on. Over the memory ceiling an allocation
--- raises "not enough memory"; a used-up CPU budget is a cancel with code `limit`.
---@param memory_bytes? integer
---@param cpu_s? number
function Fiber:limit(memory_bytes, cpu_s) end

--- Values of the fiber, looked up in its parent's when it has none of that name. `log` is where print and
--- agentbox.log go; `scope` belongs to agentbox.async.
---@return table
function Fiber:locals() end

--- Bytes of the Lua heap that the fiber's account pays for.
---@return integer
function Fiber:memory() end

---@class agentbox.sys.fiber
local M = {}

--- Starts a fiber. When the main fiber ends, all others are cancelled.
---@param fn fun(...): ...
---@param ... any
---@return agentbox.Fiber
function M.spawn(fn, ...) end

--- The fiber that runs; nothing outside of every fiber.
---@return agentbox.Fiber?
function M.current() end

--- Waits for wake; its values, or nothing after the timeout.
---@async
---@param timeout_s? number
---@return any ...
function M.park(timeout_s) end

---@async
---@param seconds number
function M.sleep(seconds) end

--- Lets the other fibers and the loop have a turn.
---@async
function M.yield() end

---@return { fibers: integer, ops: integer, heap_bytes: integer }
function M.stats() end

--- The ceiling of the whole Lua heap in bytes; 0 for none.
---@param bytes integer
function M.heap_limit(bytes) end

return M

--- Structured concurrency: a fiber cannot outlive the scope that started it.
---
---     local a, b
---     async.scope(function(s)
---       s:spawn(function() a = fetch "x" end)
---       s:spawn(function() b = fetch "y" end)
---     end)                                  -- both have ended here
---
--- The first error in a scope cancels the other fibers of it; they are waited for (their <close> handlers may
--- wait, up to the grace period), then the error is raised again by the function that opened the scope.
--- Cancel raises once where a fiber waits, and pcall lets it through.
---
--- Waiting is allowed in functions, pcall, iterators, metamethods such as __index and <close> handlers. It is not
--- in a module's top level, sort and gsub callbacks, __tostring and coroutine.wrap.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local queue = require "agentbox.async.queue"
local time = require "agentbox.sys.time"

local M = {}

---@class agentbox.Scope
---@field private _kids table    # fibers not yet joined, and false for the others
---@field private _failed agentbox.Fiber?
local Scope = {}
Scope.__index = Scope

-- Runs when a child's function is left: a failure must stop the siblings at once, not when it is their turn
-- to be joined. A child that somebody cancelled has not failed.
local kid_guard = {
  __close = function(guard, e)
    if e == nil or (err.is(e) and e.code == "cancelled") then return end
    local scope = guard.scope
    scope._failed = scope._failed or fiber.current()
    scope:cancel()
  end,
}

local function run_kid(scope, fn, ...)
  local guard <close> = setmetatable({ scope = scope }, kid_guard) -- luacheck: ignore guard
  fiber.current():locals().scope = scope
  return fn(...)
end

---Starts a fiber that the scope waits for.
---@param fn fun(...): ...
---@param ... any   # arguments
---@return agentbox.Fiber
function Scope:spawn(fn, ...)
  if self._closed then error("the scope has ended", 2) end
  local kid = fiber.spawn(run_kid, self, fn, ...)
  self._kids[#self._kids + 1] = kid
  if self._failed then kid:cancel() end
  return kid
end

---Cancels every fiber of the scope; the scope ends when they have.
---@param reason? agentbox.Err
function Scope:cancel(reason)
  local me = fiber.current()
  for _, kid in ipairs(self._kids) do
    if kid and kid ~= me then kid:cancel(reason) end
  end
end

-- Children may start more children while they are waited for.
local function join_all(scope)
  local kids, i = scope._kids, 1
  while i <= #kids do
    local kid = kids[i]
    local ok, e = kid:join()
    if not ok and not scope._failed and e.code ~= "cancelled" then scope._failed = kid end
    if not ok and scope._failed == kid then scope._error = e end
    kids[i] = false
    i = i + 1
  end
end

-- The owner leaves while children live: it was cancelled, or something raised.
local scope_guard = {
  __close = function(guard)
    local scope = guard.scope
    if scope._closed then return end
    scope:cancel()
    for _, kid in ipairs(scope._kids) do
      if kid then kid:join() end
    end
    scope._closed = true
  end,
}

---Opens a scope, runs fn in a fiber of it, and waits for every fiber that was started there.
---@async
---@param fn fun(scope: agentbox.Scope, ...): ...
---@param ... any   # arguments after the scope
---@return any ...  # what fn returned
function M.scope(fn, ...)
  local scope = setmetatable({ _kids = {} }, Scope)
  local guard <close> = setmetatable({ scope = scope }, scope_guard) -- luacheck: ignore guard
  local body = scope:spawn(fn, scope, ...)
  join_all(scope)
  scope._closed = true
  if scope._error then error(scope._error, 0) end
  return select(2, body:join())
end

---Starts a fiber in the innermost scope; outside of every scope it ends with the main fiber.
---@param fn fun(...): ...
---@param ... any
---@return agentbox.Fiber
function M.spawn(fn, ...)
  local scope = fiber.current():locals().scope
  if scope and not scope._closed then return scope:spawn(fn, ...) end
  return fiber.spawn(fn, ...)
end

---Runs all functions at once; gives their first results in order.
---@async
---@param fns (fun(): any)[]
---@return any[]
function M.all(fns)
  return M.each(fns, function(fn) return fn() end)
end

---Calls fn(item, index) for every item, at most `limit` at a time; gives the first results in order.
---@async
---@generic T
---@param list T[]
---@param fn fun(item: T, index: integer): any
---@param opts? { limit?: integer }
---@return any[]
function M.each(list, fn, opts)
  local limit = opts and opts.limit or math.huge
  for key in pairs(opts or {}) do
    if key ~= "limit" then error(("unknown option '%s'"):format(tostring(key)), 2) end
  end
  if limit < 1 then error("limit must be at least 1", 2) end
  local n, at, out = #list, 0, {}
  local function work()
    while at < n do
      at = at + 1
      local i = at
      out[i] = fn(list[i], i)
    end
  end
  M.scope(function(s)
    for _ = 1, math.min(limit, n) do s:spawn(work) end
  end)
  return out
end

---Runs all functions at once; the first one that ends decides: its results, or its error. The others are cancelled.
---@async
---@param fns (fun(): ...)[]
---@return any ...
function M.race(fns)
  if #fns == 0 then error("race of nothing", 2) end
  local results
  M.scope(function(s)
    for _, fn in ipairs(fns) do
      s:spawn(function()
        local r = table.pack(fn())
        if results then return end
        results = r
        s:cancel()
      end)
    end
  end)
  return table.unpack(results, 1, results.n)
end

local timeout_guard = {
  __close = function(guard)
    if guard.done then return end
    guard.fiber:cancel()
    guard.fiber:join()
  end,
}

local function settle(guard, seconds, ok, ...)
  guard.done = true
  if ok then return ... end
  local e = ...
  if err.is(e) and e.code == "timeout" and guard.fiber:expired() then
    return nil, err.new("timeout", ("no result within %g s"):format(seconds), { where = e.where, own = true })
  end
  error(e, 0)
end

---Runs fn in a fiber of its own, cancelled after `seconds`. An error of fn is raised again.
---@async
---@param seconds number
---@param fn fun(...): ...
---@param ... any
---@return any ...            # what fn returned, or nil, err with code `timeout`
function M.timeout(seconds, fn, ...)
  local f = fiber.spawn(fn, ...)
  local guard <close> = setmetatable({ fiber = f }, timeout_guard)
  f:set_deadline(time.monotonic() + seconds)
  return settle(guard, seconds, f:join())
end

---@async
---@param seconds number
function M.sleep(seconds)
  return fiber.sleep(seconds)
end

---Lets other fibers run.
---@async
function M.yield()
  return fiber.yield()
end

---@param permits integer
---@return agentbox.Semaphore
function M.semaphore(permits)
  return queue.semaphore(permits)
end

---A queue between fibers that holds up to `room` values.
---@param room? integer   # 1 unless given
---@return agentbox.Channel
function M.channel(room)
  return queue.channel(room)
end

return M

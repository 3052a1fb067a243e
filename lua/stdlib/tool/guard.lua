--- tool/guard.lua: runs a lab's function so that nothing it does reaches another rollout.
---
--- The function gets a fiber of its own with a deadline, a ceiling on Lua memory and a budget of CPU time. A loop
--- without end is sliced by the engine until the budget is gone and is then stopped; a memory hog fails at its
--- ceiling; a raise comes back as a value with its traceback.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"

local M = {}

--- How long a stopped function may take over its <close> handlers.
local GRACE_S = 5

---@class agentbox.GuardLimits
---@field memory_bytes? integer
---@field cpu_s? number        # Lua's own; waiting costs none
---@field blame? function      # the lab's function, when the one that is called is the library's

---@class agentbox.Defect
---@field msg string
---@field traceback? string
---@field kind "raise"|"timeout"|"memory"|"cpu"

--- Ends the fiber when its caller leaves, whatever the way.
local scope_meta = {}

function scope_meta.__close(scope)
  local child = scope[1]
  local status = child:status()
  if status == "done" or status == "failed" then return end
  child:cancel()
  child:join(GRACE_S)
end

local function traced(problem)
  -- An error value travels as it is: its code says whose fault it is.
  if err.is(problem) then return problem end
  return { defect = true, msg = tostring(problem), traceback = debug.traceback(tostring(problem), 2) }
end

local function body(fn, ...)
  return xpcall(fn, traced, ...)
end

--- Where a lab's function is written; nothing for the library's own.
local function place_of(fn)
  local info = fn and debug.getinfo(fn, "S")
  if not info or info.linedefined < 1 or info.source:find "^@agentbox/" then return "" end
  return (" (the function at %s:%d)"):format(info.short_src, info.linedefined)
end

--- What a failure of the fiber itself is: out of memory or CPU, or a cancel that came from the limits. No message handler
--- runs for these, so that the line is the error's own, or that of the function to blame.
---@param problem any
---@param limits agentbox.GuardLimits
---@param blame? function
---@return agentbox.Defect
function M.classify(problem, limits, blame)
  local code = err.is(problem) and problem.code or nil
  local text = err.is(problem) and problem.msg or tostring(problem)
  if code == "nomem" or text:find("not enough memory", 1, true) then
    local mb = (limits.memory_bytes or 0) // (1 << 20)
    return { kind = "memory", msg = ("used more than its %d MB of Lua memory%s"):format(mb, place_of(blame)) }
  end
  if code == "limit" then
    local place = problem.where and (" (%s)"):format(problem.where) or place_of(blame)
    return { kind = "cpu", msg = text .. place }
  end
  return { kind = "raise", msg = text, traceback = type(problem) == "table" and problem.traceback or nil }
end

--- What came of it: what join returned, and within that what the body's xpcall did.
local function settle(limits, blame, timeout_s, joined, ok, problem, ...)
  if joined == nil then
    return nil, { kind = "timeout", msg = ("gave no result within %g s%s"):format(timeout_s, place_of(blame)) }
  end
  if joined == false then return nil, M.classify(ok, limits, blame) end
  if ok then return true, problem, ... end
  if type(problem) == "table" and problem.defect and not problem.msg:find("not enough memory", 1, true) then
    return nil, { kind = "raise", msg = problem.msg, traceback = problem.traceback }
  end
  -- Out of memory is a bare text: Lua calls no message handler for it.
  local is_limit = not err.is(problem) or problem.code == "nomem" or problem.code == "limit"
  if is_limit then return nil, M.classify(err.is(problem) and problem or problem.msg or problem, limits, blame) end
  return false, problem
end

-- Waits for a child that did not end in its first turn.
local function join(child, timeout_s)
  local scope <close> = setmetatable({ child }, scope_meta) -- luacheck: ignore
  return child:join(timeout_s)
end

--- Calls fn(...) under limits.
---
--- Returns true and the results; or false and an engine error (`agentbox.err`) that the function raised; or nil and a
--- defect.
---@async
---@param fn function
---@param limits agentbox.GuardLimits
---@param timeout_s number
---@return boolean? ok
---@return any ...
function M.call(fn, limits, timeout_s, ...)
  local child = fiber.spawn(body, fn, ...)
  child:limit(limits.memory_bytes, limits.cpu_s)
  local blame = limits.blame or fn
  if child:begin() then return settle(limits, blame, timeout_s, child:join()) end
  return settle(limits, blame, timeout_s, join(child, timeout_s))
end

return M

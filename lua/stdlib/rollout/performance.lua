--- rollout/performance.lua: one agent at work, in a fiber of its own, some turns at a time.
---
--- The agent pauses at the top of each turn and goes on when somebody asks for turns; it ends with a stop. Whatever
--- it does, it ends: its fiber has the episode's deadline, a budget of CPU time and a ceiling on Lua memory.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local guard = require "agentbox.tool.guard"
local outcome = require "agentbox.outcome"

local M = {}

--- Over the episode's time, what an agent that looks at no clock gets before it is stopped.
local GRACE_S = 10

---@class agentbox.Performance
---@field stop? agentbox.Stop      # once the agent has ended
---@field private allowance number # turns it may begin
local Performance = {}
Performance.__index = Performance

-- Until somebody asks for turns.
local function wait_for_turns(self)
  while self.allowance <= 0 do
    self.paused = true
    if self.waiter then self.waiter:wake() end
    fiber.park()
  end
end

local function traced(problem)
  if err.is(problem) then return problem end
  return err.new("defect", tostring(problem), { traceback = debug.traceback(tostring(problem), 2) })
end

local function defect(self, problem)
  local place = problem.where and (" (%s)"):format(problem.where) or ""
  self.ctx.rec:event("error", problem.traceback or tostring(problem.msg) .. place)
  return outcome.stop("tool_error", { class = "engine", msg = "the agent failed: " .. tostring(problem.msg) })
end

--- What an agent's return or raise means.
local function stop_of(self, ok, reason, detail)
  if ok then return outcome.stop(type(reason) == "string" and reason or "final_answer", detail) end
  if err.is(reason) and reason.waited_s then return outcome.stop(outcome.of_call(reason, self.ctx.budget), reason) end
  if err.infra(reason) then
    return outcome.stop(err.class(reason) == "sandbox" and "sandbox_error" or "tool_error", reason)
  end
  if not err.is(reason) or reason.code == "nomem" or reason.code == "limit" then reason = guard.classify(reason, self.limits, self.agent) end
  return defect(self, reason)
end

--- What stopped an agent that neither returned nor raised.
local function stop_of_fiber(self)
  local _, problem = self.fiber:join()
  if err.is(problem) and problem.code == "timeout" then
    return outcome.stop("wall_timeout", "the episode's time was over")
  end
  if err.is(problem) and problem.code == "cancelled" then return outcome.stop("user_cancel", "the agent was cancelled") end
  return defect(self, guard.classify(problem, self.limits, self.agent))
end

local at_end = { __close = function(self)
  self[1].ended = true
  self[1].ctx:_rest()
  if self[1].waiter then self[1].waiter:wake() end
end }

local function body(self)
  local signal <close> = setmetatable({ self }, at_end) -- luacheck: ignore
  fiber.current():locals().log = function(level, text) self.ctx.rec:event(level, text) end
  self.stop = stop_of(self, xpcall(self.agent, traced, self.ctx))
end

--- An agent that has not begun.
---@param agent function
---@param ctx agentbox.Ctx
---@param limits agentbox.GuardLimits
---@return agentbox.Performance
function M.new(agent, ctx, limits)
  local self = setmetatable({
    agent = agent, ctx = ctx, limits = limits, allowance = 0, paused = false, ended = false,
  }, Performance)
  ctx.performance = self
  return self
end

--- Called by the agent at the top of each turn.
---@async
function Performance:pause()
  if self.allowance <= 0 then wait_for_turns(self) end
  self.allowance = self.allowance - 1
end

--- Lets the agent take up to `turns` turns and waits until it has, or has ended.
---@async
---@param turns number
function Performance:advance(turns)
  self.allowance = turns
  self.waiter = fiber.current()
  if not self.fiber then
    self.fiber = fiber.spawn(body, self)
    self.fiber:limit(self.limits.memory_bytes, self.limits.cpu_s)
    self.fiber:set_deadline(self.ctx.budget.deadline + GRACE_S)
    self.ctx.budget.on_move = function(deadline) self.fiber:set_deadline(deadline and deadline + GRACE_S) end
  elseif self.paused then
    self.paused = false
    self.fiber:wake()
  end
  while not self.ended and not self.paused do fiber.park() end
  self.waiter = nil
  if self.ended and not self.stop then self.stop = stop_of_fiber(self) end
end

--- Ends the agent wherever it is. May be called twice.
---@async
function Performance:close()
  if not self.fiber or self.ended then return end
  self.fiber:cancel()
  self.fiber:join(GRACE_S)
end

return M

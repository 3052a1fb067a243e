--- agents/oracle.lua: an agent that asks no model and does what the task's solution/ does. Its reward says whether the task
--- is sound: `agentbox run TASK --agent oracle`.
---
--- The solution's files are laid over the workspace; of a task in Harbor's form they go to /solution, and solve.sh is run.
local err = require "agentbox.err"
local seed = require "agentbox.seed"
local text = require "agentbox.text"

local M = {}

local function solve(ctx)
  local params = ctx.task.verifier.params or {}
  local ok, problem = seed.write_files(ctx.sandbox, "/solution", ctx.task.solution)
  if not ok then error(problem, 0) end
  local out
  out, problem = ctx.sandbox:exec({ "bash", "/solution/solve.sh" }, {
    cwd = ctx.workspace, env = params.solution_env, timeout_s = ctx.task.timeout_s or 600,
  })
  if not out then error(problem, 0) end
  local said = text.cut(text.scrub(out.stdout .. out.stderr), 2000)
  return "env_done", ("solve.sh: exit code %s\n%s"):format(tostring(out.exit_code), said)
end

---@return fun(ctx: agentbox.Ctx): string, any
function M.new()
  return function(ctx)
    if not next(ctx.task.solution) then error(err.new("task", ctx.task.task_id .. ": it has no solution/ to lay down"), 0) end
    if ctx.task.verifier.type == "harbor" then return solve(ctx) end
    local ok, problem = seed.write_files(ctx.sandbox, ctx.workspace, ctx.task.solution, ctx.user)
    if not ok then error(problem, 0) end
    return "env_done", "the solution's files are in the workspace"
  end
end

return M

--- agents/idle.lua: an agent that does nothing. A task that rewards it is broken: `agentbox run TASK --agent idle`.
local M = {}

---@return fun(ctx: agentbox.Ctx): string, any
function M.new()
  return function() return "final_answer", "nothing was done" end
end

return M

--- agents/shell.lua: the tool loop for agents that have only a shell; more patient with repeats, as a shell's poll is
--- a repeat that means progress.
local tool_loop = require "agentbox.agents.tool_loop"

local M = {}

---@param opts? table   # those of tool_loop
function M.new(opts)
  local merged = { max_repeats = 12 }
  for key, value in pairs(opts or {}) do merged[key] = value end
  return tool_loop.new(merged)
end

return M

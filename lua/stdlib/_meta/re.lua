---@meta agentbox.sys.re
--- Private: `agentbox.re` is the same with its documentation.

---@class agentbox.sys.Re: agentbox.Patterns
local M = {}

---@param steps integer
---@return agentbox.Patterns
function M.limited(steps) end

return M

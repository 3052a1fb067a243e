---@meta agentbox.sys.toml
--- Private: what `agentbox.toml` is built on.
local M = {}

---@param text string
---@return string? json
---@return agentbox.Err? err   # with line and column
function M.to_json(text) end

return M

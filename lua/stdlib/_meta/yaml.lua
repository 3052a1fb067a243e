---@meta agentbox.sys.yaml
--- Private: what `agentbox.yaml` is built on.

local M = {}

---@param text string
---@return any value
---@return agentbox.Err? err      # with line and column
function M.decode(text) end

--- Whether the text, without quotes, is read back as this string, by YAML 1.1 readers too.
---@param text string
---@return boolean
function M.is_plain(text) end

return M

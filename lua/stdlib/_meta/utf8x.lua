---@meta agentbox.sys.utf8x
--- Private: what `agentbox.text` is built on.

local M = {}

---@param bytes string
---@return boolean
function M.valid(bytes) end

---@param bytes string
---@return string text
---@return boolean changed
function M.scrub(bytes) end

---@param text string
---@return integer code_points
function M.len(text) end

---@param text string
---@param points integer
---@return string
function M.truncate_cp(text, points) end

---@param text string
---@param bytes integer
---@return string
function M.truncate_bytes(text, bytes) end

return M

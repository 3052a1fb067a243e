--- SHA-256. Hashes in records are written "sha256:<64 digits>"; these functions give the digits.
local sys = require "agentbox.sys.hash"

---@class agentbox.Hasher
---@field update fun(self, bytes: string, ...: string): agentbox.Hasher
---@field hex fun(self, more?: string): string   # of what was fed so far and of `more`; feeding may go on

---@class agentbox.hash
---@field sha256 fun(bytes: string): string
---@field hasher fun(): agentbox.Hasher
local M = { sha256 = sys.sha256, hasher = sys.hasher }

---The tagged form, "sha256:...".
---@param bytes string
---@return string
function M.tagged(bytes)
  return "sha256:" .. sys.sha256(bytes)
end

return M

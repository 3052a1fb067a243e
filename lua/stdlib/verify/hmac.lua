--- verify/hmac.lua: HMAC-SHA256 over the hash primitive.
local hash = require "agentbox.hash"

local M = {}

local BLOCK = 64

local function raw(hex)
  return (hex:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

local function masked(key, byte)
  local out = {}
  for i = 1, BLOCK do out[i] = string.char((key:byte(i) or 0) ~ byte) end
  return table.concat(out)
end

---@param key string    # bytes
---@param text string
---@return string hex
function M.sha256(key, text)
  if #key > BLOCK then key = raw(hash.sha256(key)) end
  return hash.sha256(masked(key, 0x5c) .. raw(hash.sha256(masked(key, 0x36) .. text)))
end

return M

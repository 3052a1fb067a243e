--- File names made of ids that models and data sets wrote.
local hash = require "agentbox.sys.hash"

local M = { MAX_BYTES = 100 }

--- A file name for an id: the id itself when it is made of letters, digits, `.`, `_` and `-`, starts with neither `.`
--- nor `-` and is at most 100 bytes; otherwise what can be kept of it and eight digits of its hash, so that
--- different ids never share a name and none leaves its folder or reads as an option.
---@param id string
---@return string
function M.safe(id)
  local name = id:gsub("[^%w._-]", "_")
  if name == "" or name:find "^[.-]" then name = "_" .. name end
  if name == id and name ~= "" and #name <= M.MAX_BYTES then return name end
  return name:sub(1, M.MAX_BYTES - 9) .. "-" .. hash.sha256(id):sub(1, 8)
end

return M

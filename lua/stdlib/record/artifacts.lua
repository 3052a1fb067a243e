--- Files that a rollout leaves for its record: bytes by hash, within limits, unchanged unless a secret stands in them.
local body = require "agentbox.record.body"
local json = require "agentbox.json"
local secret = require "agentbox.secret"
local text = require "agentbox.text"

local M = { MAX_FILE_BYTES = 16 * 1024 * 1024, MAX_TOTAL_BYTES = 64 * 1024 * 1024, MAX_FILES = 1000 }

-- { [path] = bytes }, { [path] = { bytes = } } or { { path =, bytes = } }, as one sorted list.
local function listed(given)
  local list = {}
  for key, value in pairs(given) do
    local path = type(key) == "string" and key or value.path
    list[#list + 1] = { path = path, bytes = type(value) == "table" and value.bytes or value, cut = value.cut }
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  return list
end

--- Describes the artifacts; their bytes are added to `blobs`. One over the limit is named with `omitted`.
---@param given table?
---@param blobs table<string, string>
---@return table? list
function M.keep(given, blobs)
  if not given or next(given) == nil then return nil end
  local out, total = json.array {}, 0
  for i, file in ipairs(listed(given)) do
    if i > M.MAX_FILES then break end
    local entry = {}
    entry.path = (text.scrub(file.path))
    entry.bytes = #file.bytes
    if #file.bytes > M.MAX_FILE_BYTES or total + #file.bytes > M.MAX_TOTAL_BYTES then
      entry.omitted = true
    else
      local bytes = secret.redact(file.bytes)
      if bytes ~= file.bytes then entry.redacted = true end
      entry.hash = body.hash(bytes)
      blobs[entry.hash], total = bytes, total + #bytes
    end
    out[#out + 1] = entry
  end
  return out
end

return M

--- mcp/content.lua: the result of a server's tool as the text that a model reads.
---
--- Source: Model Context Protocol 2025-06-18, Server Features / Tools / Tool Result. Text is given as it is; what is not
--- text is named with its type and size, so that the model knows it was there.
local json = require "agentbox.json"

local M = {}

local function bytes_of(base64)
  return type(base64) == "string" and #base64 * 3 // 4 or 0
end

local function kind_of(item)
  return type(item.mimeType) == "string" and item.mimeType or "unknown type"
end

local as_text = {}

function as_text.text(item)
  return type(item.text) == "string" and item.text or nil
end

function as_text.image(item)
  return ("[image: %s, %d bytes, not shown]"):format(kind_of(item), bytes_of(item.data))
end

function as_text.audio(item)
  return ("[audio: %s, %d bytes, not shown]"):format(kind_of(item), bytes_of(item.data))
end

function as_text.resource(item)
  local resource = type(item.resource) == "table" and item.resource or {}
  if type(resource.text) == "string" then return ("[resource %s]\n%s"):format(tostring(resource.uri), resource.text) end
  return ("[resource %s: %s, %d bytes, not shown]"):format(tostring(resource.uri), kind_of(resource), bytes_of(resource.blob))
end

function as_text.resource_link(item)
  return ("[link to resource %s: %s]"):format(tostring(item.uri), tostring(item.description or item.name))
end

---@param result table            # the result of tools/call
---@return string? text
---@return string|boolean is_error   # a problem in words when there is no text; else whether the tool says that it failed
function M.text(result)
  local parts = {}
  if not json.is_array(result.content) then
    if result.structuredContent == nil then return nil, "its result has no content" end
    return json.encode(result.structuredContent), result.isError == true
  end
  for _, item in ipairs(result.content) do
    local make = type(item) == "table" and as_text[item.type]
    local part = make and make(item)
    parts[#parts + 1] = part or "[content of an unknown kind]"
  end
  if #parts == 0 and result.structuredContent ~= nil then return json.encode(result.structuredContent), result.isError == true end
  return table.concat(parts, "\n"), result.isError == true
end

return M

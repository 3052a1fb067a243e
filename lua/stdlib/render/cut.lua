--- Texts cut to a size, so that a page stays one that a browser opens. What was cut is `{ h, n, t }`: its beginning,
--- how many bytes are not there, its end.
local json = require "agentbox.json"
local text = require "agentbox.text"

local M = {}

--- A member, nil for null, decoded where it was kept as text.
---@type fun(field: any): any
M.value = json.plain

-- The last `max` bytes, from the beginning of a character on.
local function ending(bytes, max)
  local at = #bytes - max + 1
  while at <= #bytes and bytes:byte(at) & 0xC0 == 0x80 do at = at + 1 end
  return bytes:sub(at)
end

--- A text within its bounds, three quarters of them from its beginning.
---@param bytes string
---@param max integer
---@return string|table
function M.text(bytes, max)
  if not text.valid(bytes) then bytes = text.scrub(bytes) end
  if #bytes <= max then return bytes end
  local head = text.cut_bytes(bytes, max * 3 // 4)
  local tail = ending(bytes, max // 4)
  return { h = head, n = #bytes - #head - #tail, t = tail }
end

--- Whatever it is, as text; what is no text as JSON.
---@param value any
---@param max integer
---@return string|table|nil
function M.shown(value, max)
  if value == nil or value == json.null then return nil end
  if type(value) ~= "string" then value = json.encode(value) end
  return M.text(value, max)
end

--- A small structure as it is, a large one as text.
---@param field any
---@param max integer
---@return any
function M.facts(field, max)
  local value = M.value(field)
  if value == nil then return nil end
  local bytes = json.encode(value)
  return #bytes <= max and value or M.text(bytes, max)
end

--- The first and the last of a list, when it is longer than the page takes.
---@param list any
---@param max integer
---@param make fun(item: any, index: integer): any   # index from 0
---@return table
function M.each(list, max, make)
  local out, n = json.array {}, type(list) == "table" and #list or 0
  for i = 1, n do
    if i <= max - max // 4 or i > n - max // 4 then out[#out + 1] = make(list[i], i - 1) end
  end
  return out
end

return M

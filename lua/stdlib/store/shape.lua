--- Shapes of documents that other programs wrote: what is read must be of the right kind, whatever else there is.
---
--- A shape is a kind ("string", "number", "boolean", "any"), `{ list = shape }` or `{ object = { key = shape } }`; a
--- kind that ends in "?" and a table with `optional` may be absent or null.
local json = require "agentbox.json"

local M = {}

local PHRASES = { string = "text", number = "a number", boolean = "true or false" }

local fits

local function fits_list(value, shape, where)
  if not json.is_array(value) then return where .. " must be a list" end
  for i, item in ipairs(value) do
    local problem = fits(item, shape.list, ("%s[%d]"):format(where, i - 1))
    if problem then return problem end
  end
end

local function fits_object(value, shape, where)
  if not json.is_object(value) then return where .. " must be an object" end
  for key, inner in pairs(shape.object) do
    local problem = fits(value[key], inner, where == "" and key or where .. "." .. key)
    if problem then return problem end
  end
end

function fits(value, shape, where)
  local absent = value == nil or value == json.null
  if type(shape) == "table" then
    if absent and shape.optional then return nil end
    if shape.list then return fits_list(value, shape, where) end
    return fits_object(value, shape, where)
  end
  local kind, optional = shape:match "^(%a+)(%??)$"
  if kind == "any" or absent and optional == "?" then return nil end
  if absent then return where .. " is missing" end
  if type(value) ~= kind then return ("%s must be %s"):format(where, PHRASES[kind]) end
end

--- What is wrong with a value, naming the place; nil when it fits.
---@param value any
---@param shape any
---@return string? problem
function M.problem(value, shape)
  local problem = fits(value, shape, "")
  return problem and (problem:gsub("^ ", "the document "))
end

return M

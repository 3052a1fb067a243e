--- schema/arguments.lua: arguments of tool calls against JSON Schema, with errors that a model can act on.
local json = require "agentbox.json"
local schema = require "agentbox.schema"

local M = {}

--- Raises a problem inside the checker; M.validate turns it into a value.
local function fail(path, text) error({ problem = (path == "" and "" or path .. ": ") .. text }, 0) end

local function join(path, key) return path == "" and tostring(key) or path .. "." .. tostring(key) end

local validate

local json_types = {
  string = function(v) return type(v) == "string" end,
  boolean = function(v) return type(v) == "boolean" end,
  null = function(v) return v == json.null end,
  number = function(v) return type(v) == "number" end,
  integer = function(v) return type(v) == "number" and math.tointeger(v) ~= nil end,
  array = function(v) return type(v) == "table" and schema.is_list(v) and not json.is_object(v) end,
  object = schema.is_map,
}

--- What models get wrong in spelling, not in meaning: numbers and booleans sent as text, whole floats.
local function coerce(value, kind)
  if kind == "integer" and type(value) == "number" then return math.tointeger(value) end
  if type(value) ~= "string" then return nil end
  if kind == "integer" then return math.tointeger(tonumber(value)) end
  if kind == "number" then return tonumber(value) end
  if kind == "boolean" then
    if value == "true" then return true end
    if value == "false" then return false end
  end
end

local function as_type(value, kinds)
  kinds = type(kinds) == "table" and kinds or { kinds }
  for _, kind in ipairs(kinds) do
    if json_types[kind] and json_types[kind](value) then
      local whole = kind == "integer" and math.tointeger(value)
      return whole or value, true
    end
  end
  for _, kind in ipairs(kinds) do
    local made = coerce(value, kind)
    if made ~= nil then return made, true end
  end
  return nil, false, table.concat(kinds, " or ")
end

local function is_required(shape, key)
  for _, name in ipairs(shape.required or {}) do
    if name == key then return true end
  end
  return false
end

local function allows_null(shape)
  for _, kind in ipairs(type(shape.type) == "table" and shape.type or { shape.type }) do
    if kind == "null" then return true end
  end
  return shape.type == nil
end

local function refuse_unknown(props, key, path)
  local names = schema.names(props)
  fail(join(path, key), "unknown argument" .. schema.suggest(tostring(key), names) .. "; "
    .. (#names > 0 and "valid: " .. table.concat(names, ", ") or "this tool takes none"))
end

local function validate_object(shape, value, path, depth)
  local props, extra = shape.properties or {}, shape.additionalProperties
  for _, name in ipairs(shape.required or {}) do
    if value[name] == nil then fail(join(path, name), "required argument is missing") end
  end
  local out = json.object {}
  for key, item in pairs(value) do
    local sub = props[key]
    if sub == nil and extra == false then refuse_unknown(props, key, path) end
    if sub == nil then sub = extra end
    if type(sub) ~= "table" then
      out[key] = item
    elseif item ~= json.null or is_required(shape, key) or allows_null(sub) then
      out[key] = validate(sub, item, join(path, key), depth)
    end -- else: a null for an argument that may be left out means that it was left out
  end
  return out
end

local function validate_array(shape, value, path, depth)
  if shape.minItems and #value < shape.minItems then fail(path, "needs at least " .. shape.minItems .. " items") end
  if shape.maxItems and #value > shape.maxItems then fail(path, "takes at most " .. shape.maxItems .. " items") end
  if type(shape.items) ~= "table" then return value end
  local out = json.array {}
  for i, item in ipairs(value) do out[i] = validate(shape.items, item, ("%s[%d]"):format(path, i - 1), depth) end
  return out
end

local function validate_bounds(shape, value, path)
  local n = type(value) == "number" and value
  if n and shape.minimum and n < shape.minimum then fail(path, "must be at least " .. shape.minimum) end
  if n and shape.maximum and n > shape.maximum then fail(path, "must be at most " .. shape.maximum) end
  if type(value) ~= "string" then return end
  local length = utf8.len(value) or #value
  if shape.minLength and length < shape.minLength then fail(path, "is shorter than " .. shape.minLength) end
  if shape.maxLength and length > shape.maxLength then fail(path, "is longer than " .. shape.maxLength) end
end

local function validate_any(list, value, path, depth)
  local first
  for _, sub in ipairs(list) do
    local ok, result = pcall(validate, sub, value, path, depth)
    if ok then return result end
    if type(result) ~= "table" or not result.problem then error(result, 0) end
    first = first or result
  end
  error(first or { problem = path .. ": matches no allowed form" }, 0)
end

local function is_one_of(value, enum)
  local text = type(value) == "table" and json.encode(value, { sorted = true })
  for _, allowed in ipairs(enum) do
    if allowed == value then return true end
    if text and type(allowed) == "table" and json.encode(allowed, { sorted = true }) == text then return true end
  end
  return false
end

function validate(shape, value, path, depth)
  if type(shape) ~= "table" then return value end
  if depth > 32 then fail(path, "is nested too deeply") end
  if shape.anyOf or shape.oneOf then value = validate_any(shape.anyOf or shape.oneOf, value, path, depth + 1) end
  if shape.type then
    local made, ok, expected = as_type(value, shape.type)
    if not ok then fail(path, ("must be %s, is %s"):format(expected, schema.word(value))) end
    value = made
  end
  if shape.enum and not is_one_of(value, shape.enum) then
    fail(path, ("must be one of %s, is %s"):format(schema.choices(shape.enum), schema.word(value)))
  end
  validate_bounds(shape, value, path)
  if type(value) ~= "table" then return value end
  if json_types.array(value) and (shape.items or shape.minItems or shape.maxItems) then
    return validate_array(shape, value, path, depth + 1)
  end
  if schema.is_map(value) and (shape.properties or shape.required or shape.additionalProperties ~= nil) then
    return validate_object(shape, value, path, depth + 1)
  end
  return value
end

-- ---------------------------------------------------------------- the usual case

--- What a flat shape says of its members, by member: their type, when that is all it says. False for other shapes.
---@type table<table, { kinds: table<string, function>, required: string[] }|false>
local flat = setmetatable({}, { __mode = "k" })

local SAYS_NOTHING = { type = true, description = true, default = true, title = true, examples = true }

local function kind_of(shape)
  if type(shape) ~= "table" or type(shape.type) ~= "string" then return nil end
  for key in pairs(shape) do
    if not SAYS_NOTHING[key] then return nil end
  end
  return json_types[shape.type]
end

local function flat_of(shape)
  local known = flat[shape]
  if known ~= nil then return known end
  flat[shape] = false
  if shape.type ~= "object" or shape.anyOf or shape.oneOf or shape.enum then return false end
  local kinds = {}
  for name, sub in pairs(shape.properties or {}) do
    if type(name) ~= "string" then return false end
    kinds[name] = kind_of(sub)
  end
  flat[shape] = { kinds = kinds, required = shape.required or {} }
  return flat[shape]
end

--- Whether a value fits as it is; false also when that takes a closer look.
local function fits(shape, value)
  local known = type(shape) == "table" and json.is_object(value) and flat_of(shape)
  if not known then return false end
  local kinds = known.kinds
  for key, item in next, value do
    local is_kind = kinds[key]
    if not is_kind or not is_kind(item) or math.type(item) == "float" then return false end
  end
  for _, name in ipairs(known.required) do
    if value[name] == nil then return false end
  end
  return true
end

--- Checks a value against the part of JSON Schema that tool parameters use: type, properties, required,
--- additionalProperties, items, enum, anyOf, oneOf, bounds and lengths. Other keywords say something to the model
--- only.
---@param shape table
---@param value any
---@return any clean       # coerced: numbers and booleans sent as text, whole floats; nulls for optional arguments dropped
---@return string? problem # one line that names the argument
function M.validate(shape, value)
  if fits(shape, value) then return value end
  local ok, result = pcall(validate, shape, value, "", 0)
  if ok then return result end
  if type(result) ~= "table" or not result.problem then error(result, 0) end
  return nil, (result.problem:gsub("^: ", ""))
end

return M

--- TOML 1.0, to the same values as `agentbox.json`.
---
--- Keys of tables come sorted; dates and times are strings, and so are infinities and NaN.
local json = require "agentbox.json"
local sys = require "agentbox.sys.toml"

local M = {}

--- Parses a TOML document of at most 1 MB.
---@nodiscard
---@param text string
---@return table? value
---@return agentbox.Err? err    # parse (with line and column) or toobig
function M.decode(text)
  local found, problem = sys.to_json(text)
  if not found then return nil, problem end
  return json.decode(found)
end

-- A basic string is a JSON string, but for the one control character that JSON lets through.
local function quote(text) return (json.encode(text):gsub("\127", "\\u007f")) end

local function key_of(name)
  name = tostring(name)
  return name:find "^[%w_-]+$" and name or quote(name)
end

local function keys_of(value)
  if json.is_object(value) then return json.keys(value) end
  local names = {}
  for name in pairs(value) do names[#names + 1] = tostring(name) end
  table.sort(names)
  return names
end

-- A value on one line.
local function inline(value, depth)
  if depth > 50 then error("toml.encode: nested too deep", 0) end
  if type(value) == "string" then return quote(value) end
  if type(value) == "number" then
    if value ~= value then return "nan" end
    if value == math.huge or value == -math.huge then return value > 0 and "inf" or "-inf" end
    return json.encode(value)
  end
  if type(value) == "boolean" then return tostring(value) end
  if type(value) ~= "table" then error("toml.encode: TOML has no " .. type(value), 0) end
  local parts = {}
  if json.is_array(value) or #value > 0 then
    for i, one in ipairs(value) do parts[i] = inline(one, depth + 1) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  for _, name in ipairs(keys_of(value)) do
    if value[name] ~= json.null then parts[#parts + 1] = key_of(name) .. " = " .. inline(value[name], depth + 1) end
  end
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

local function is_table(value)
  return type(value) == "table" and value ~= json.null and not json.is_array(value) and #value == 0
end

local function section(out, path, value)
  local tables = {}
  for _, name in ipairs(keys_of(value)) do
    if is_table(value[name]) then
      tables[#tables + 1] = name
    elseif value[name] ~= json.null then
      out[#out + 1] = key_of(name) .. " = " .. inline(value[name], 0)
    end
  end
  for _, name in ipairs(tables) do
    local below = path == "" and key_of(name) or path .. "." .. key_of(name)
    if #out > 0 then out[#out + 1] = "" end
    out[#out + 1] = "[" .. below .. "]"
    section(out, below, value[name])
  end
end

--- Writes a table as a TOML document. Members that are null are left out. Raises on what TOML has not.
---@nodiscard
---@param value table     # an object, or a plain table with text keys (sorted then)
---@return string
function M.encode(value)
  local out = {}
  section(out, "", value)
  return table.concat(out, "\n") .. "\n"
end

return M

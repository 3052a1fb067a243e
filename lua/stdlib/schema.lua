--- schema.lua: shapes of what people write in Lua, JSON or YAML: options, tasks, configuration. What models write, the
--- arguments of tool calls, has schema/arguments.lua.
---
--- A record is `{ field = { "type", required=, default=, enum=, min=, max=, of=, fields= } }`. Types: string, integer,
--- number, boolean, function, list, map, record, any; several as "string|list". Null and absent are the same.
local err = require "agentbox.err"
local fast = require "agentbox.schema.fast"
local json = require "agentbox.json"
local suggest = require "agentbox.suggest"

local M = {}

-- ---------------------------------------------------------------- words for people

--- ' (did you mean "x"?)' when a name is near, else "".
---@param name string
---@param names string[]
---@return string
function M.suggest(name, names)
  local best = #name <= 64 and suggest.nearest(name, names)
  return best and (' (did you mean "%s"?)'):format(best) or ""
end

---@param map table
---@return string[]
function M.names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = tostring(name) end
  table.sort(names)
  return names
end

--- Whether a table is a list: marked so by the JSON reader, or keys 1..n and nothing else.
---@param value any
---@return boolean
function M.is_list(value)
  if type(value) ~= "table" then return false end
  if json.is_array(value) then return true end
  if json.is_object(value) then return false end
  local n = 0
  for _ in pairs(value) do n = n + 1 end
  return n == #value
end

--- Whether a table is a map: named keys, or empty and not marked as a list.
---@param value any
---@return boolean
function M.is_map(value)
  return type(value) == "table" and not json.is_array(value) and (next(value) == nil or #value == 0)
end

--- A value, as messages call it.
---@param value any
---@return string
function M.word(value)
  if value == nil or value == json.null then return "null" end
  if type(value) == "table" then return M.is_list(value) and next(value) ~= nil and "a list" or "a map" end
  if type(value) == "string" then
    return ('the text "%s"'):format(#value > 40 and value:sub(1, 40) .. "..." or value)
  end
  if type(value) == "number" or type(value) == "boolean" then return tostring(value) end
  return "a " .. type(value)
end

--- The values of an enum, as messages list them: words as they are, or all as JSON where one is no text.
---@param enum any[]
---@return string
function M.choices(enum)
  local out, texts = {}, true
  for i, value in ipairs(enum) do out[i], texts = value, texts and type(value) == "string" end
  for i, value in ipairs(texts and {} or enum) do out[i] = json.encode(value, { sorted = true }) end
  return table.concat(out, ", ")
end

-- ---------------------------------------------------------------- records

local checks = {
  any = function(v) return v end,
  string = function(v) if type(v) == "string" then return v end end,
  text = function(v) if type(v) == "string" and not v:find("\0", 1, true) then return v end end,
  boolean = function(v) if type(v) == "boolean" then return v end end,
  ["function"] = function(v) if type(v) == "function" then return v end end,
  list = function(v) if M.is_list(v) then return v end end,
  map = function(v) if M.is_map(v) then return v end end,
  record = function(v) if M.is_map(v) then return v end end,
  table = function(v) if type(v) == "table" then return v end end,
  number = function(v)
    local n = type(v) == "number" and v or type(v) == "string" and tonumber(v) or nil
    if n and n == n then return n end
  end,
  integer = function(v)
    local n = type(v) == "number" and v or type(v) == "string" and tonumber(v) or nil
    return n and math.tointeger(n)
  end,
}

local phrases = {
  any = "anything", string = "text", text = "text without a zero byte",
  boolean = "true or false", ["function"] = "a function", list = "a list",
  map = "a map", record = "a map", table = "a table", number = "a number", integer = "a whole number",
}

local check_field

--- Raises a problem inside the checker; M.check turns it into a value.
local function fail(path, text) error({ problem = (path == "" and "" or path .. ": ") .. text }, 0) end

local function join(path, key) return path == "" and tostring(key) or path .. "." .. tostring(key) end

local function check_record(value, record, path)
  local out = {}
  local names = M.names(record)
  for key in pairs(value) do
    if not record[key] then
      fail(join(path, key), "unknown key" .. M.suggest(tostring(key), names) .. "; known: " .. table.concat(names, ", "))
    end
  end
  for _, name in ipairs(names) do
    local field = record[name]
    local given = value[name]
    if given == json.null then given = nil end
    if given == nil and field.required then fail(join(path, name), "is missing") end
    if given == nil then
      out[name] = field.default
    else
      out[name] = check_field(given, field, join(path, name))
    end
  end
  return out
end

local function check_inside(value, field, path)
  if field.fields and M.is_map(value) then return check_record(value, field.fields, path) end
  if field.of and M.is_list(value) and not (M.is_map(value) and field[1] == "map") then
    local out = json.array {}
    for i, item in ipairs(value) do out[i] = check_field(item, field.of, ("%s[%d]"):format(path, i - 1)) end
    return out
  end
  if field.of and type(value) == "table" then
    local out = {}
    for key, item in pairs(value) do
      if type(key) ~= "string" then fail(path, "keys must be text") end
      out[key] = check_field(item, field.of, join(path, key))
    end
    return out
  end
  return value
end

local function check_range(value, field, path)
  if field.enum then
    for _, allowed in ipairs(field.enum) do
      if value == allowed then return end
    end
    local texts = {}
    for _, allowed in ipairs(field.enum) do texts[#texts + 1] = type(allowed) == "string" and allowed or nil end
    local near = type(value) == "string" and M.suggest(value, texts) or ""
    fail(path, ("must be one of %s, is %s%s"):format(M.choices(field.enum), M.word(value), near))
  end
  if type(value) ~= "number" then return end
  if field.min and value < field.min then fail(path, ("must be at least %s, is %s"):format(field.min, value)) end
  if field.max and value > field.max then fail(path, ("must be at most %s, is %s"):format(field.max, value)) end
end

function check_field(value, field, path)
  local expected = {}
  for kind in field[1]:gmatch("[^|]+") do
    local got = checks[kind](value)
    if got ~= nil then
      got = check_inside(got, field, path)
      check_range(got, field, path)
      return got
    end
    expected[#expected + 1] = phrases[kind]
  end
  fail(path, ("must be %s, is %s"):format(table.concat(expected, " or "), M.word(value)))
end

-- ---------------------------------------------------------------- what is called

--- Checks a map against a record and fills in defaults. The input is left alone.
---@param value any
---@param record table
---@param opts? { code?: string, where?: string, path?: string }
---@return table? clean
---@return agentbox.Err? err   # code `config` unless given; the text names the place and the field
function M.check(value, record, opts)
  local clean = fast.record(value, record)
  if clean then return clean end
  opts = opts or {}
  local path = opts.path or ""
  local ok, result = pcall(function()
    if not M.is_map(value) then fail(path, "must be a map, is " .. M.word(value)) end
    return check_record(value, record, path)
  end)
  if ok then return result end
  if type(result) ~= "table" or not result.problem then error(result, 0) end
  return nil, err.new(opts.code or "config", (opts.where and opts.where .. ": " or "") .. result.problem)
end

--- Checks a function's option table; a mistake raises and blames the caller of that function.
---@param value table?
---@param record table
---@param fname string
---@param level? integer   # 1 blames the caller of the function that calls this
---@return table
function M.options(value, record, fname, level)
  if value ~= nil and type(value) ~= "table" then
    error(("%s: options must be a table, is %s"):format(fname, M.word(value)), (level or 1) + 2)
  end
  local clean, problem = M.check(value or {}, record)
  if not clean then error(fname .. ": " .. problem.msg, (level or 1) + 2) end
  return clean
end

return M

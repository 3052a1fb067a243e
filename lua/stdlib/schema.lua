--- schema.lua: shapes of what people write in Lua, JSON or YAML: options, tasks, configuration. What models write, the
--- arguments of tool calls, has schema/arguments.lua.
---
--- A record is `{ field = { "type", required=, default=, enum=, min=, max=, of=, fields= } }`. Types: string, integer,
--- number, boolean, function, list, map, record, any; several as "string|list". Null and absent are the same.
local json = require "agentbox.json"
local err = require "agentbox.err"
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
    local near = type(value) == "string" and M.suggest(value, field.enum) or ""
    fail(path, ("must be one of %s, is %s%s"):format(table.concat(field.enum, ", "), M.word(value), near))
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

-- ---------------------------------------------------------------- the same for what is right

--- What is right, as nearly everything is, is checked without paths and words for mistakes. `false` says that something
--- is wrong; what, and where first, is found out above.
local fast_field

---@class agentbox.SchemaPlan
---@field fields table<string, { [1]: table, kinds: function[], plain: boolean }>
---@field defaults table
---@field required string[]

---@type table<table, agentbox.SchemaPlan>
local plans = setmetatable({}, { __mode = "k" })

local function plan_of(record)
  local plan = plans[record]
  if plan then return plan end
  plan = { fields = {}, defaults = {}, required = {} }
  for name, field in pairs(record) do
    local kinds = {}
    for kind in field[1]:gmatch("[^|]+") do kinds[#kinds + 1] = checks[kind] end
    plan.fields[name] = {
      field, kinds = kinds, plain = not (field.of or field.fields or field.enum or field.min or field.max),
    }
    if field.required then plan.required[#plan.required + 1] = name end
    plan.defaults[name] = field.default
  end
  plans[record] = plan
  return plan
end

local function fast_record(value, record)
  local plan, out, null = plan_of(record), {}, json.null
  local fields = plan.fields
  for name, default in next, plan.defaults do out[name] = default end
  for key, given in pairs(value) do
    local field = fields[key]
    if not field then return false end
    if given ~= null then
      local got = fast_field(given, field)
      if got == nil then return false end
      out[key] = got
    end
  end
  for _, name in ipairs(plan.required) do
    if out[name] == nil then return false end
  end
  return out
end

local function fast_inside(value, field)
  if field.fields and M.is_map(value) then
    local out = fast_record(value, field.fields)
    return out or nil
  end
  if field.of then
    local ok, out = pcall(check_inside, value, field, "")
    return ok and out or nil
  end
  return value
end

--- The value, or nil.
function fast_field(given, field)
  for _, check in ipairs(field.kinds) do
    local got = check(given)
    if got ~= nil then
      if field.plain then return got end
      local rules = field[1]
      got = fast_inside(got, rules)
      if rules.enum and not pcall(check_range, got, rules, "") then return nil end
      if type(got) == "number" and (rules.min and got < rules.min or rules.max and got > rules.max) then return nil end
      return got
    end
  end
end

--- Checks a map against a record and fills in defaults. The input is left alone.
---@param value any
---@param record table
---@param opts? { code?: string, where?: string, path?: string }
---@return table? clean
---@return agentbox.Err? err   # code `config` unless given; the text names the place and the field
function M.check(value, record, opts)
  local clean = M.is_map(value) and fast_record(value, record)
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

--- The checker of records for what is right, as nearly everything is: without paths, and without words for mistakes.
--- It says that something is wrong; what, and where first, is found out by the checker in schema.lua.
local json = require "agentbox.json"

local M = {}

--- What both checkers have, by the one that has the words: `checks` by type, each of which gives the value or nil, and
--- `inside` and `range`, which raise what is wrong.
---@class agentbox.SchemaParts
---@field checks table<string, fun(value: any): any>
---@field is_map fun(value: any): boolean
---@field inside fun(value: any, field: table, path: string): any
---@field range fun(value: any, field: table, path: string)

---@class agentbox.SchemaPlan
---@field fields table<string, { [1]: table, kinds: function[], plain: boolean }>
---@field defaults table
---@field required string[]

---@type table<table, agentbox.SchemaPlan>
local plans = setmetatable({}, { __mode = "k" })

local function plan_of(record, parts)
  local plan = plans[record]
  if plan then return plan end
  plan = { fields = {}, defaults = {}, required = {} }
  for name, field in pairs(record) do
    local kinds = {}
    for kind in field[1]:gmatch("[^|]+") do kinds[#kinds + 1] = parts.checks[kind] end
    plan.fields[name] = {
      field, kinds = kinds, plain = not (field.of or field.fields or field.enum or field.min or field.max),
    }
    if field.required then plan.required[#plan.required + 1] = name end
    plan.defaults[name] = field.default
  end
  plans[record] = plan
  return plan
end

local function check_inside(value, field, parts)
  if field.fields and parts.is_map(value) then return M.record(value, field.fields, parts) end
  if field.of then
    local ok, out = pcall(parts.inside, value, field, "")
    return ok and out or nil
  end
  return value
end

local function check_field(given, field, parts)
  for _, check in ipairs(field.kinds) do
    local got = check(given)
    if got ~= nil then
      if field.plain then return got end
      local rules = field[1]
      got = check_inside(got, rules, parts)
      if rules.enum and not pcall(parts.range, got, rules, "") then return nil end
      if type(got) == "number" and (rules.min and got < rules.min or rules.max and got > rules.max) then return nil end
      return got
    end
  end
end

--- A copy of the map with its defaults, or nil if anything is wrong.
---@param value table
---@param record table
---@param parts agentbox.SchemaParts
---@return table?
function M.record(value, record, parts)
  local plan, out, null = plan_of(record, parts), {}, json.null
  local fields = plan.fields
  for name, default in next, plan.defaults do out[name] = default end
  for key, given in pairs(value) do
    local field = fields[key]
    if not field then return nil end
    if given ~= null then
      local got = check_field(given, field, parts)
      if got == nil then return nil end
      out[key] = got
    end
  end
  for _, name in ipairs(plan.required) do
    if out[name] == nil then return nil end
  end
  return out
end

return M

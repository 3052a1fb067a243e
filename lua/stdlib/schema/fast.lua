--- The checker of records for what is right, as nearly everything is: without paths, and without words for mistakes.
--- It says that something is wrong; what, and where first, is found out by the checker in schema.lua.
local sys = require "agentbox.sys.fields"

local M = {}

---@type table<table, agentbox.sys.FieldPlan>
local plans = setmetatable({}, { __mode = "k" })

local plan_of

local KINDS = sys.KINDS
local NUMBERS, TEXTS = KINDS.number | KINDS.integer, KINDS.string | KINDS.text

local function rule_of(field)
  local kinds = 0
  for kind in field[1]:gmatch("[^|]+") do
    kinds = kinds | KINDS[kind]
    if kinds & NUMBERS ~= 0 and kinds & TEXTS == 0 then kinds = kinds | KINDS.numeral end
  end
  if not (field.of or field.fields or field.enum or field.min or field.max) then return kinds end
  return {
    kinds, fields = field.fields and plan_of(field.fields), of = field.of and rule_of(field.of), enum = field.enum,
    min = field.min, max = field.max,
  }
end

function plan_of(record)
  local plan = plans[record]
  if plan then return plan end
  plan = { {}, {}, {}, 0 }
  plans[record] = plan
  for name, field in pairs(record) do
    plan[1][name] = rule_of(field)
    if field.required then table.insert(plan[3], name) else plan[2][name] = field.default end
  end
  return plan
end

--- A copy of the map with its defaults, or nil if anything is wrong or needs a closer look.
---@param value any
---@param record table
---@return table?
function M.record(value, record) return sys.check(value, plan_of(record)) end

return M

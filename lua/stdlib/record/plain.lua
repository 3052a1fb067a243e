--- Makes any Lua value fit for the record: a scorer may hand over NaN, a function, a table that holds itself
--- or bytes that are no text, and the row must be written all the same, with a note of what was replaced.
local err = require "agentbox.err"
local json = require "agentbox.json"
local secret = require "agentbox.secret"
local text = require "agentbox.text"

local M = {}

local MAX_DEPTH = 64

local walk

local function text_of(value, where, notes)
  if text.valid(value) then return value end
  notes[#notes + 1] = where .. ": bytes that are not UTF-8 replaced"
  return (text.scrub(value))
end

local function number_of(value, where, notes)
  if value == value and value ~= math.huge and value ~= -math.huge then return value end
  notes[#notes + 1] = ("%s: %s written as null"):format(where, value ~= value and "NaN" or "infinity")
  return json.null
end

local function key_of(key, where, notes)
  if type(key) == "string" then return text_of(key, where, notes) end
  if type(key) == "number" or type(key) == "boolean" then return tostring(key) end
  return "<" .. type(key) .. ">"
end

local function is_sequence(value)
  if json.is_array(value) then return true end
  if json.is_object(value) then return false end
  local n = #value
  if n == 0 then return false end
  for key in next, value do
    if math.type(key) ~= "integer" or key < 1 or key > n then return false end
  end
  return true
end

local function sorted_keys(value)
  if json.is_object(value) then return json.keys(value) end
  local keys = {}
  for key in next, value do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

local function table_of(value, where, notes, open)
  if open[value] or open.depth >= MAX_DEPTH then
    notes[#notes + 1] = where .. (open[value] and ": a table that holds itself left out" or ": nested too deeply")
    return json.null
  end
  open[value], open.depth = true, open.depth + 1
  local out
  if is_sequence(value) then
    out = json.array {}
    for i = 1, #value do out[i] = walk(value[i], ("%s[%d]"):format(where, i), notes, open) end
  else
    out = json.object {}
    for _, key in ipairs(sorted_keys(value)) do
      local name = key_of(key, where, notes)
      out[name] = walk(value[key], where .. "." .. name, notes, open)
    end
  end
  open[value], open.depth = nil, open.depth - 1
  return out
end

function walk(value, where, notes, open)
  local kind = type(value)
  if value == nil or value == json.null then return json.null end
  if kind == "boolean" then return value end
  if kind == "string" then return text_of(value, where, notes) end
  if kind == "number" then return number_of(value, where, notes) end
  local special = json.type(value)
  if special == "raw" or special == "number" then return value end
  if kind == "table" then
    if err.is(value) then
      return table_of({ code = value.code, msg = value.msg, op = value.op, sys = value.sys }, where, notes, open)
    end
    return table_of(value, where, notes, open)
  end
  notes[#notes + 1] = ("%s: a %s cannot be recorded"):format(where, kind)
  return "<" .. kind .. ">"
end

--- A text for the record, valid UTF-8 and free of secrets; nil for nil.
---@param value any
---@return string?
function M.text(value)
  if value == nil then return nil end
  return secret.redact((text.scrub(tostring(value))))
end

--- Code points kept of what went wrong: a raise, its traceback, a server's words may have any size.
local MAX_REASON = 16384

--- The same for the text of an error, cut.
---@param value any
---@return string?
function M.reason(value)
  if value == nil then return nil end
  return (text.cut(M.text(value), MAX_REASON))
end

--- A copy of `value` that any JSON reader accepts: ordered, finite, valid UTF-8, no cycles.
---@param value any
---@param where string        # how the notes call it, as in "metadata"
---@param notes string[]      # receives one sentence per thing replaced
---@return any
function M.copy(value, where, notes)
  return walk(value, where, notes, { depth = 0 })
end

return M

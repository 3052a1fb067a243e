--- generate/extract.lua: the JSON object in what a model wrote.
---
--- Models put fences and prose around it, leave a comma too many, write True for true or break a string over lines. All of
--- that is put right outside of strings only: what stands inside quotes is the content of files and is never changed.
local err = require "agentbox.err"
local json = require "agentbox.json"

local M = {}

--- Objects that are tried before a text is given up, and how deep one may nest.
local MAX_STARTS, MAX_DEPTH = 64, 200

-- ---------------------------------------------------------------- a forgiving reader

local WORDS = { ["true"] = true, True = true, ["false"] = false, False = false, null = json.null, None = json.null,
  NaN = json.null, undefined = json.null }
local ESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/", ["'"] = "'" }

local function fail(text) error({ why = text }, 0) end

-- The next place that is neither blank nor a comment.
local function skip(text, at)
  while true do
    at = text:find("%S", at) or #text + 1
    local two = text:sub(at, at + 1)
    if two == "//" then
      at = text:find("\n", at, true) or #text + 1
    elseif two == "/*" then
      local _, stop = text:find("*/", at + 2, true)
      at = (stop or #text) + 1
    else
      return at
    end
  end
end

local function unicode(text, at)
  local code = tonumber(text:match("^%x%x%x%x", at) or "", 16)
  if not code then return nil end
  if code >= 0xD800 and code < 0xDC00 then
    local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 4) or "", 16)
    if low and low >= 0xDC00 and low < 0xE000 then
      return utf8.char(0x10000 + ((code - 0xD800) << 10) + low - 0xDC00), at + 10
    end
  end
  if code >= 0xD800 and code < 0xE000 then return "\xEF\xBF\xBD", at + 4 end
  return utf8.char(code), at + 4
end

-- A string from its opening quote. Line ends may stand in it; an escape that JSON does not know keeps its backslash.
local function string_at(text, at)
  local quote = text:sub(at, at)
  local out, from = {}, at + 1
  while true do
    local stop = text:find(quote == '"' and '["\\]' or "['\\]", from)
    if not stop then fail "ends inside a string" end
    out[#out + 1] = text:sub(from, stop - 1)
    if text:sub(stop, stop) == quote then return table.concat(out), stop + 1 end
    local char = text:sub(stop + 1, stop + 1)
    local plain, after
    if char == "u" then plain, after = unicode(text, stop + 2) end
    out[#out + 1] = plain or ESCAPES[char] or "\\" .. char
    from = after or stop + 2
  end
end

local value_at

local function key_at(text, at)
  if text:find("^[\"']", at) then return string_at(text, at) end
  local name = text:match("^[%a_][%w_-]*", at)
  if not name then fail(("no key at byte %d"):format(at)) end
  return name, at + #name
end

local function object_at(text, at, depth)
  local out = json.object {}
  at = skip(text, at + 1)
  while text:sub(at, at) ~= "}" do
    if at > #text then fail "ends inside an object" end
    local key
    key, at = key_at(text, at)
    at = skip(text, at)
    if text:sub(at, at) ~= ":" then fail(at > #text and "ends inside an object" or ("no ':' at byte %d"):format(at)) end
    out[key], at = value_at(text, skip(text, at + 1), depth)
    at = skip(text, at)
    if text:sub(at, at) == "," then
      at = skip(text, at + 1)
    elseif text:sub(at, at) ~= "}" then
      fail(at > #text and "ends inside an object" or ("no ',' at byte %d"):format(at))
    end
  end
  return out, at + 1
end

local function list_at(text, at, depth)
  local out = json.array {}
  at = skip(text, at + 1)
  while text:sub(at, at) ~= "]" do
    if at > #text then fail "ends inside a list" end
    out[#out + 1], at = value_at(text, at, depth)
    at = skip(text, at)
    if text:sub(at, at) == "," then
      at = skip(text, at + 1)
    elseif text:sub(at, at) ~= "]" then
      fail(at > #text and "ends inside a list" or ("no ',' at byte %d"):format(at))
    end
  end
  return out, at + 1
end

function value_at(text, at, depth)
  if depth > MAX_DEPTH then fail "is nested too deep" end
  local char = text:sub(at, at)
  if char == "{" then return object_at(text, at, depth + 1) end
  if char == "[" then return list_at(text, at, depth + 1) end
  if char == '"' or char == "'" then return string_at(text, at) end
  local number = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  if number and tonumber(number) then return tonumber(number), at + #number end
  local word = text:match("^%a+", at)
  if word and WORDS[word] ~= nil then return WORDS[word], at + #word end
  fail(at > #text and "ends before a value" or ("no value at byte %d"):format(at))
end

-- ---------------------------------------------------------------- finding it

-- Where the object that begins at a brace ends, strings left out; nil when it does not.
local function end_of(text, at)
  local depth, from = 0, at
  while true do
    local stop = text:find('[{}"]', from)
    if not stop then return nil end
    local char = text:sub(stop, stop)
    if char == '"' then
      local ok, _, after = pcall(string_at, text, stop)
      if not ok then return nil end
      from = after
    else
      depth = depth + (char == "{" and 1 or -1)
      if depth == 0 then return stop end
      from = stop + 1
    end
  end
end

-- One object from a brace on: strictly, then as a forgiving reader would.
local function read(text, at)
  local stop = end_of(text, at)
  if stop then
    local value = json.decode(text:sub(at, stop))
    if json.is_object(value) then return value, nil, false, stop end
  end
  local ok, value, after = pcall(object_at, text, at, 0)
  if ok then return value, nil, true, after - 1 end
  if type(value) ~= "table" or not value.why then error(value, 0) end
  return nil, value.why
end

local function has_any(value, names)
  if not names then return true end
  for _, name in ipairs(names) do
    if value[name] ~= nil then return true end
  end
  return false
end

--- The object in a text. With `names`, the first one that has any of them: prose may hold braces too.
---@param text string
---@param names? string[]
---@return table? object
---@return string|boolean why_or_repaired   # why there is none; whether something had to be put right
function M.object(text, names)
  local why, at, tried = "holds no JSON object", text:find("{", 1, true), 0
  while at and tried < MAX_STARTS do
    local value, problem, repaired, stop = read(text, at)
    tried = tried + 1
    if value and has_any(value, names) then return value, repaired end
    if problem and (tried == 1 or problem:find "^ends") then why = problem end
    at = text:find("{", (stop or at) + 1, true)
  end
  return nil, why
end

-- ---------------------------------------------------------------- single values

local YES = { ["true"] = true, yes = true, ["1"] = true, accept = true, accepted = true, y = true }
local NO = { ["false"] = true, no = true, ["0"] = true, reject = true, rejected = true, n = true, [""] = true }

--- A truth value, as models write them; nil when it is neither.
---@param value any
---@return boolean?
function M.boolean(value)
  if type(value) == "boolean" then return value end
  local word = type(value) == "number" and ("%g"):format(value) or type(value) == "string" and value:lower():match "^%s*(.-)%s*$"
  if YES[word] then return true end
  if NO[word] then return false end
end

--- A number, as models write them: 0.8, "0.8", "8/10" and "8 out of 10" are 0.8, "80%" too.
---@param value any
---@return number?
function M.number(value)
  if type(value) == "number" then return value == value and value or nil end
  if type(value) ~= "string" then return nil end
  local part, whole = value:match "(-?%d+%.?%d*)%s*/%s*(%d+%.?%d*)"
  if not part then part, whole = value:match "(-?%d+%.?%d*)%s+[Oo][Uu][Tt] [Oo][Ff]%s+(%d+%.?%d*)" end
  if part and tonumber(whole) > 0 then return tonumber(part) / tonumber(whole) end
  local percent = value:match "(-?%d+%.?%d*)%s*%%"
  if percent then return tonumber(percent) / 100 end
  return tonumber(value:match "-?%d+%.?%d*" or "")
end

--- A list or a map that may have been written as a JSON text of its own.
---@param value any
---@return any
function M.structure(value)
  if type(value) ~= "string" then return value end
  local decoded = json.decode(value)
  if type(decoded) == "table" then return decoded end
  return value:find "^%s*{" and M.object(value) or value
end

--- The last resort for an error that a caller wants to hand on.
---@param why string
---@return nil
---@return agentbox.Err
function M.unreadable(why) return nil, err.new("parse", "the answer " .. why) end

return M

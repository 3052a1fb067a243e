--- YAML 1.2 with the core schema, to the same values as `agentbox.json`.
---
--- `no`, `on` and `22:22` are strings, `010` is ten, `1.10` is a float. Objects keep the order of their
--- keys, null is `json.null`. Text that begins with `{` or `[` is tried as JSON first.
local json = require "agentbox.json"
local sys = require "agentbox.sys.yaml"

local M = {}

local INDENT = "  "
local MAX_DEPTH = 100

--- Parses one YAML document of at most 1 MB; an empty text is null.
---
--- Raises on bad arguments.
--- Returns nil, err (`parse` or `toobig`, with `line` and `column`) when the text is not YAML, repeats a key, has a
--- key that is not a scalar, an unknown tag, a second document, or aliases that expand to too much.
---@nodiscard
---@param text string
---@return any value
---@return agentbox.Err? err
function M.decode(text)
  return sys.decode(text)
end

--- What YAML does not allow as it is, or takes for a line break.
local function is_rare(cp)
  return cp >= 0x7f and cp <= 0x9f or cp == 0x2028 or cp == 0x2029 or cp == 0xfeff or cp >= 0xfffe and cp <= 0xffff
end

--- All that is_rare can be true for begins with one of these bytes; `s` is UTF-8.
local RARE = "[\127\194\226\239][\128-\191]*"

--- A double-quoted YAML string is a JSON string, but for the rare characters.
local function quote(s)
  if sys.is_plain(s) then return s end
  return (json.encode(s):gsub(RARE, function(c)
    local cp = utf8.codepoint(c)
    return is_rare(cp) and ("\\u%04x"):format(cp) or nil
  end))
end

local function scalar(v)
  if type(v) == "string" then return quote(v) end
  if v ~= v then return ".nan" end
  if v == math.huge then return ".inf" end
  if v == -math.huge then return "-.inf" end
  return json.encode(v)
end

--- A string of several lines as a block: only where that loses nothing.
local function block(s, prefix)
  if not s:find("\n", 1, true) or s:find "^[ \t\n]" or s:find "[ \t]\n" or s:find "\n\n$" then return nil end
  if s:gsub("[\n\t]", ""):find "%c" or not utf8.len(s) then return nil end
  for c in s:gmatch(RARE) do
    if is_rare(utf8.codepoint(c)) then return nil end
  end
  local head = s:sub(-1) == "\n" and "|" or "|-"
  local body = s:gsub("\n$", ""):gsub("[^\n]+", function(line) return prefix .. line end)
  return head .. "\n" .. body
end

local function is_list(t)
  return json.is_array(t) or (not json.is_object(t) and #t > 0)
end

local function is_empty(v)
  return type(v) ~= "table" or (not is_list(v) and next(v) == nil) or (is_list(v) and #v == 0)
end

local emit

local function emit_list(out, t, depth)
  local prefix = INDENT:rep(depth)
  for _, v in ipairs(t) do
    if is_empty(v) then
      out[#out + 1] = prefix .. "- "
      emit(out, v, depth + 1)
    else
      local inner = {}
      emit(inner, v, depth + 1)
      -- The first line of a nested value stands beside the dash.
      inner[1] = prefix .. "- " .. inner[1]:sub(#prefix + #INDENT + 1)
      table.move(inner, 1, #inner, #out + 1, out)
    end
  end
end

local function emit_object(out, t, depth)
  local prefix = INDENT:rep(depth)
  for _, k in ipairs(json.keys(t)) do
    local v = t[k]
    out[#out + 1] = prefix .. quote(k) .. ":" .. (is_empty(v) and " " or "\n")
    emit(out, v, depth + 1)
  end
end

--- Scalars are written where the line stands and end it; lists and objects start on a line of their own.
function emit(out, v, depth)
  if depth > MAX_DEPTH then error("a cycle, or nested too deeply", 0) end
  if type(v) ~= "table" then
    local text = type(v) == "string" and block(v, INDENT:rep(math.max(depth, 1))) or scalar(v)
    out[#out + 1] = text .. "\n"
  elseif is_list(v) then
    if #v == 0 then out[#out + 1] = "[]\n" else emit_list(out, v, depth) end
  elseif next(v) == nil then
    out[#out + 1] = "{}\n"
  else
    emit_object(out, v, depth)
  end
end

--- Writes a value as YAML in block style; what `decode` would read as something else than a string is quoted.
---
--- Raises for what `agentbox.json` cannot write either, except that NaN and infinity are fine.
---@param value any
---@return string text
function M.encode(value)
  local out = {}
  emit(out, value, 0)
  return table.concat(out)
end

return M

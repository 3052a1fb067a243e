--- A configuration file: finding it, reading it, checking it against the closed list of fields, and putting
--- environment variables into its strings.
local fields = require "agentbox.config.fields"
local suggest = require "agentbox.suggest"

local M = {}

-- The reference looks for these in this order; .toml is known only to say that it is not read.
local names = { "agentbox.yaml", "agentbox.yml", "agentbox.toml", "agentbox.json" }

local function failure(msg)
  return nil, { code = "config", msg = msg }
end

local function is_null(value)
  return value == nil or value == require("agentbox.json").null
end

local function exists(path)
  local stat = require "agentbox.sys.fs".stat(path)
  return stat ~= nil and stat.type ~= "dir"
end

local function parent(dir)
  if dir == "/" then return nil end
  local up = dir:match "^(.*)/[^/]+$"
  return up == "" and "/" or up
end

---The nearest configuration file: AGENTBOX_CONFIG, else the first hit from `cwd` up to the root.
---@async
---@param cwd? string
---@param env? fun(name: string): string?
---@return string? path       # nil without an error: there is none
---@return table? err
function M.find(cwd, env)
  local fs, os_ = require "agentbox.sys.fs", require "agentbox.sys.os"
  local named = (env or os_.env)("AGENTBOX_CONFIG")
  if named and named ~= "" then
    if exists(named) then return named end
    return failure(("AGENTBOX_CONFIG names %s, which does not exist"):format(named))
  end
  local dir = cwd or fs.cwd()
  while dir do
    for _, name in ipairs(names) do
      local path = (dir == "/" and "" or dir) .. "/" .. name
      if exists(path) then return path end
    end
    dir = parent(dir)
  end
  return nil
end

-- Where a key stands, found by walking its parts down the text; good enough to point a person at the line.
local function line_of(text, path)
  local at, line = 1, 1
  for part in path:gmatch "[^.%[%]]+" do
    if not part:match "^%d+$" then
      local escaped = part:gsub("%p", "%%%0")
      local found = text:find("%f[%w_\"'-][\"']?" .. escaped .. "[\"']?%s*:", at)
      if not found then break end
      line = line + select(2, text:sub(at, found - 1):gsub("\n", ""))
      at = found
    end
  end
  return line
end

local function at(file, path, msg)
  return failure(("%s:%d: %s: %s"):format(file.path, line_of(file.text, path), path, msg))
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local checks = {
  string = function(v) return type(v) == "string" or type(v) == "number" end,
  number = function(v) return type(v) == "number" end,
  integer = function(v) return math.tointeger(v) ~= nil and type(v) == "number" end,
  boolean = function(v) return type(v) == "boolean" end,
  map = function(v) return type(v) == "table" and not require("agentbox.json").is_array(v) end,
  list = function(v) return type(v) == "table" and require("agentbox.json").is_array(v) end,
  any = function() return true end,
}
checks.secret = checks.string
checks.paths = function(v) return type(v) == "string" or checks.list(v) end

local article = { integer = "a whole number", map = "a mapping", list = "a list", secret = "a text", string = "a text",
  number = "a number", boolean = "true or false", paths = "a path or a list of paths" }

local check_table

local function check_value(file, path, value, kind)
  if is_null(value) then return true end
  if type(kind) == "table" then return check_table(file, path, value, kind) end
  local pending = type(value) == "string" and value:find("${", 1, true)
  if pending or checks[kind](value) then return true end
  return at(file, path, ("must be %s, not %s"):format(article[kind], tostring(value)))
end

local function check_each(file, path, value, kind)
  if checks.list(value) then
    for i, item in ipairs(value) do
      local ok, err = check_value(file, ("%s[%d]"):format(path, i), item, kind.each)
      if not ok then return nil, err end
    end
    return true
  end
  if not kind.by_name or type(value) ~= "table" then return at(file, path, "must be a list") end
  for name, item in pairs(value) do
    local ok, err = check_value(file, path .. "." .. name, item, kind.by_name)
    if not ok then return nil, err end
  end
  return true
end

function check_table(file, path, value, kind)
  if kind.each then return check_each(file, path, value, kind) end
  if not checks.map(value) then return at(file, path, "must be a mapping") end
  for key, item in pairs(value) do
    local full = path == "" and tostring(key) or path .. "." .. tostring(key)
    if kind[key] == nil then
      return at(file, full, "unknown key" .. suggest.hint(tostring(key), sorted_keys(kind)))
    end
    local ok, err = check_value(file, full, item, kind[key])
    if not ok then return nil, err end
  end
  return true
end

local function decode(path, text)
  local module = path:find "%.ya?ml$" and "agentbox.yaml" or "agentbox.json"
  local value, err = require(module).decode(text)
  if value == nil and err then return failure(("%s: %s"):format(path, err.msg or tostring(err))) end
  return value
end

-- The reference calls the list of students `models` as well.
local function rename_models(values)
  if not is_null(values.models) and is_null(values.students) and checks.list(values.models) then
    values.students, values.models = values.models, nil
  end
end

---Reads and checks one file. Strings keep their `${NAME}` until M.expand.
---@async
---@param path string
---@return table? file       # { path, text, values }
---@return table? err
function M.read(path)
  if path:find "%.toml$" then
    return failure(path .. ": TOML is not read; write the same keys as agentbox.yaml or agentbox.json")
  end
  local text, err = require "agentbox.sys.fs".read(path, 1 << 20)
  if not text then return failure(("%s: %s"):format(path, err.msg or tostring(err))) end
  local values, bad = decode(path, text)
  if bad then return nil, bad end
  if is_null(values) then values = {} end
  local file = { path = path, text = text, values = values }
  if type(values) ~= "table" or require("agentbox.json").is_array(values) and next(values) ~= nil then
    return failure(path .. ": the file must hold a mapping of sections, not a list or a single value")
  end
  local ok, problem = check_table(file, "", values, fields.sections)
  if not ok then return nil, problem end
  rename_models(values)
  return file
end

-- What `${inner}` stands for.
local function variable(inner, env)
  local name, default = inner:match "^([%a_][%w_]*):%-(.*)$"
  name = name or inner:match "^[%a_][%w_]*$"
  if not name then return nil, ("'${%s}' is not a variable; write $$ for a dollar sign"):format(inner) end
  local value = env(name)
  if value == nil or (value == "" and default) then value = default end
  if value then return value end
  return nil, ("the environment variable %s is not set (${%s:-text} gives a default)"):format(name, name)
end

local function expand_text(file, path, text, env)
  local out, from = {}, 1
  while true do
    local dollar = text:find("$", from, true)
    if not dollar then break end
    out[#out + 1] = text:sub(from, dollar - 1)
    local mark = text:sub(dollar + 1, dollar + 1)
    if mark == "{" then
      local stop = text:find("}", dollar, true)
      if not stop then return at(file, path, "'${' is not closed; write $$ for a dollar sign") end
      local value, problem = variable(text:sub(dollar + 2, stop - 1), env)
      if not value then return at(file, path, problem) end
      out[#out + 1], from = value, stop + 1
    else
      out[#out + 1], from = "$", dollar + (mark == "$" and 2 or 1)
    end
  end
  return table.concat(out) .. text:sub(from)
end

---A text as a value of the kind that a field has; nil and what it must be otherwise.
---@param text string
---@param kind any
---@return any value
---@return string? problem
function M.convert(text, kind)
  local out = text
  if kind == "number" then out = tonumber(text)
  elseif kind == "integer" then out = math.tointeger(tonumber(text) or 0.5)
  elseif kind == "boolean" then
    if text == "true" or text == "false" then return text == "true" end
    out = nil
  end
  if out ~= nil then return out end
  return nil, ("must be %s, not '%s'"):format(article[kind], text)
end

local function kind_below(kind, key)
  if type(kind) ~= "table" then return kind == "map" and "any" or kind == "list" and "any" or kind end
  if kind.each then return type(key) == "number" and kind.each or kind.by_name or kind.each end
  return kind[key]
end

---A value of the file with its variables filled in, as a copy; errors name the key and the file.
---@param file table
---@param path string        # where the value stands, for messages
---@param value any
---@param kind any
---@param env fun(name: string): string?
---@return any value
---@return table? err
function M.expand(file, path, value, kind, env)
  if is_null(value) then return nil end
  if type(value) == "string" then
    local out, err = expand_text(file, path, value, env)
    if not out then return nil, err end
    local converted, problem = M.convert(out, kind)
    if problem then return at(file, path, problem) end
    return converted
  elseif type(value) == "number" and (kind == "string" or kind == "secret") then
    return tostring(value)
  elseif type(value) ~= "table" then
    return value
  end
  local copy = {}
  for key, item in pairs(value) do
    local below = type(key) == "number" and ("%s[%d]"):format(path, key) or path .. "." .. key
    local out, err = M.expand(file, below, item, kind_below(kind, key), env)
    if err then return nil, err end
    copy[key] = out
  end
  return copy
end

return M

--- The configuration of one invocation: every setting with its value and its origin.
--
-- Strongest first: flag, task, environment variable, the nearest agentbox.yaml (.yml, .json), default.
local fields = require "agentbox.config.fields"
local file_ = require "agentbox.config.file"

local M = {}

---@class agentbox.Config
---@field path? string                    # the file, when there is one
---@field _file? table
---@field _env fun(name: string): string?
---@field _set table<string, { value: any, origin: string }>
local Config = {}
Config.__index = Config

---Reads the nearest configuration file.
---Returns a configuration without a file when there is none, and nil, err (`config`) when the file is wrong.
---@async
---@param opts? { cwd?: string, path?: string, env?: fun(name: string): string? }
---@return agentbox.Config?
---@return agentbox.Err?
function M.load(opts)
  opts = opts or {}
  local env = opts.env or require "agentbox.sys.os".env
  local path, err = opts.path
  if not path then
    path, err = file_.find(opts.cwd, env)
    if err then return nil, err end
  end
  local self = setmetatable({ path = path, _env = env, _set = {} }, Config)
  if path then
    self._file, err = file_.read(path)
    if not self._file then return nil, err end
  end
  return self
end

local function dig(tree, path)
  for part in path:gmatch "[^.]+" do
    if type(tree) ~= "table" then return nil end
    tree = tree[part]
  end
  return tree
end

local function kind_of(path)
  return dig(fields.sections, path)
end

---One value of the file, with its variables filled in; nil when the file does not set it.
---@param path string   # as in "teacher" or "generate.min_score"
---@return any value
---@return agentbox.Err? err
function Config:get(path)
  if not self._file then return nil end
  return file_.expand(self._file, path, dig(self._file.values, path), kind_of(path), self._env)
end

local function from_environment(self, setting)
  for _, name in ipairs(setting.env or {}) do
    local value = self._env(name)
    if value and value ~= "" then
      local converted, problem = file_.convert(value, kind_of(setting.key))
      if problem then
        return nil, nil, { code = "config", msg = ("the environment variable %s %s"):format(name, problem) }
      end
      return converted, "environment " .. name
    end
  end
end

local function lookup(self, setting, flags, task)
  local flag = setting.flag and flags[setting.flag]
  if flag ~= nil and not (type(flag) == "table" and #flag == 0) then
    return flag, "flag --" .. setting.flag:gsub("_", "-")
  end
  local of_task = setting.task and task and dig(task, setting.task)
  if of_task ~= nil then return of_task, "task " .. setting.task end
  local value, origin, err = from_environment(self, setting)
  if value ~= nil or err then return value, origin, err end
  value, err = self:get(setting.key)
  if err then return nil, nil, err end
  if value ~= nil then return value, "file " .. self.path end
  return setting.default, "default"
end

-- A server's address may hold a password; headers may hold a key.
local function register_secrets(setting, value)
  local secret
  local function keep(text)
    secret = secret or require "agentbox.secret"
    secret.register(text)
  end
  if setting.secret and type(value) == "string" then keep(value) end
  if setting.key == "model.base_url" and type(value) == "string" then
    local password = value:match "^%a+://[^/@]*:([^/@]+)@"
    if password then keep(password) end
  elseif setting.key == "model.extra_headers" and type(value) == "table" then
    for name, text in pairs(value) do
      local lower = name:lower()
      if lower:find "auth" or lower:find "key" or lower:find "token" or lower:find "cookie" or lower:find "secret" then
        keep(tostring(text))
      end
    end
  end
end

local function check_range(setting, value, origin)
  if not setting.min or type(value) ~= "number" or value >= setting.min then return nil end
  local msg = ("%s must be at least %s, not %s (%s)"):format(setting.key, setting.min, value, origin)
  return { code = "config", msg = msg }
end

---Fixes the value and the origin of every setting.
---@param flags? table<string, any>   # parsed options by name, as in max_steps
---@param task? table                 # the loaded task
---@return agentbox.Config?
---@return agentbox.Err?
function Config:resolve(flags, task)
  for _, setting in ipairs(fields.settings) do
    local value, origin, err = lookup(self, setting, flags or {}, task)
    err = err or check_range(setting, value, origin)
    if err then return nil, err end
    register_secrets(setting, value)
    self._set[setting.key] = { value = value, origin = origin }
  end
  return self
end

---@param key string   # as in "model.base_url"; raises when there is no such setting
---@return any value
---@return string origin
function Config:value(key)
  local slot = self._set[key]
  if not slot then error(("no setting '%s'"):format(key), 2) end
  return slot.value, slot.origin
end

---The settings of one section by their last name; nested ones as tables: section("sandbox").limits.memory_mb.
---@param name string
---@return table
function Config:section(name)
  local out = {}
  for key, slot in pairs(self._set) do
    local rest = key:match("^" .. name .. "%.(.+)$")
    local group, leaf = (rest or ""):match "^(.-)%.(.+)$"
    if group then
      out[group] = out[group] or {}
      out[group][leaf] = slot.value
    elseif rest then
      out[rest] = slot.value
    end
  end
  return out
end

local function as_list(value)
  if value == nil then return {} end
  return type(value) == "table" and value or { value }
end

local function folder_of(path)
  return path:match "^(.*)/[^/]*$" or "."
end

---Paths that the file lists (lua_path, tools), made absolute or relative to the current directory.
---@param key "lua_path"|"tools"
---@return string[]? paths
---@return agentbox.Err? err
function Config:paths(key)
  local value, err = self:get(key)
  if err then return nil, err end
  local out = {}
  for i, path in ipairs(as_list(value)) do
    out[i] = path:sub(1, 1) == "/" and path or folder_of(self.path) .. "/" .. path
  end
  return out
end

---Every setting in the order of the documentation: { key, value, origin, secret }.
---@return table[]
function Config:list()
  local out = {}
  for i, setting in ipairs(fields.settings) do
    local slot = self._set[setting.key]
    out[i] = { key = setting.key, value = slot.value, origin = slot.origin, secret = setting.secret }
  end
  return out
end

return M

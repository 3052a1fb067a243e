--- harbor/settings.lua: what a Harbor task.toml says, checked. What this program does not know is a warning; what it cannot do
--- is an error, since a task that is run otherwise than it says would be another task.
local err = require "agentbox.err"
local json = require "agentbox.json"
local toml = require "agentbox.toml"

local M = {}

---@class agentbox.HarborSettings
---@field name? string
---@field metadata table
---@field build_timeout_s number
---@field agent_timeout_s number
---@field verifier_timeout_s number
---@field verifier_user? string|integer
---@field verifier_env table<string, string>
---@field solution_env table<string, string>
---@field docker_image? string
---@field env table<string, string>
---@field workdir? string
---@field cpus number
---@field memory_mb integer
---@field storage_mb integer
---@field network string|table
---@field warnings string[]

local KNOWN = {
  [""] = { "version", "schema_version", "task", "metadata", "verifier", "agent", "solution", "environment", "source" },
  task = { "name", "description", "authors", "keywords", "version" },
  verifier = { "timeout_sec", "env", "user", "environment_mode", "environment" },
  agent = { "timeout_sec", "user" },
  solution = { "env" },
  environment = { "build_timeout_sec", "docker_image", "os", "cpus", "memory_mb", "memory", "storage_mb", "storage", "gpus", "gpu_types",
    "allow_internet", "network_mode", "allowed_hosts", "env", "workdir" },
}

local function refuse(text) error({ refused = text }, 0) end
local function wrong(text) error({ wrong = text }, 0) end

local function value_of(section, name, kind, default)
  local value = section[name]
  if value == nil or value == json.null then return default end
  if type(value) ~= kind or kind == "table" and not json.is_object(value) then
    wrong(("%s must be a %s"):format(name, kind == "table" and "table" or kind))
  end
  return value
end

local function positive(section, name, default)
  local value = value_of(section, name, "number", default)
  if not (value > 0 and value < 1e9) then wrong(name .. " must be above 0") end
  return value
end

local UNITS = { K = 1 / 1024, M = 1, G = 1024, T = 1024 * 1024 }

-- "4G", "512M", or the number beside it in MB.
local function megabytes(section, name, default)
  local text = section[name]
  if type(text) ~= "string" then return math.ceil(positive(section, name .. "_mb", default)) end
  local number, unit = text:match "^%s*(%d+%.?%d*)%s*([KMGT]?)i?[Bb]?%s*$"
  if not number or tonumber(number) == 0 then wrong(("%s: not a size: %s"):format(name, text)) end
  return math.ceil(tonumber(number) * (UNITS[unit] or 1 / (1 << 20)))
end

-- Values that name the host's own environment are left out: a task gets nothing from there.
local function environment_of(section, where, warnings)
  local out = {}
  local given = value_of(section, "env", "table", {})
  for _, name in ipairs(json.is_object(given) and json.keys(given) or {}) do
    local value = given[name]
    if type(value) ~= "string" then wrong(("%s.env.%s must be text"):format(where, name)) end
    if value:find("${", 1, true) then
      warnings[#warnings + 1] = ("%s.env.%s is left out: it wants the host's environment"):format(where, name)
    else
      out[name] = value
    end
  end
  return out
end

local function warn_of_unknown(section, where, warnings)
  local known = {}
  for _, name in ipairs(KNOWN[where]) do known[name] = true end
  for _, name in ipairs(json.keys(section)) do
    if not known[name] then
      warnings[#warnings + 1] = ("%s%s is not known and has no effect"):format(where == "" and "" or where .. ".", name)
    end
  end
end

local function user_of(section)
  local user = section.user
  if user == nil or user == json.null then return nil end
  if type(user) ~= "string" and math.type(user) ~= "integer" then wrong "user must be a name or a number" end
  return user
end

-- Ports are not in the form: those of the web.
local function allowed(hosts)
  local list = json.array {}
  if not json.is_array(hosts) or #hosts == 0 then wrong "allowed_hosts must be a list of names" end
  for _, host in ipairs(hosts) do
    if type(host) ~= "string" then wrong "allowed_hosts must be a list of names" end
    if host:find(":", 1, true) then host = "[" .. host .. "]" end
    list[#list + 1], list[#list + 2] = host .. ":443", host .. ":80"
  end
  return json.object { allow = list }
end

local function network_of(environment)
  local mode = value_of(environment, "network_mode", "string")
  if mode == nil then return value_of(environment, "allow_internet", "boolean", true) and "full" or "none" end
  if mode == "public" then return "full" end
  if mode == "no-network" then return "none" end
  if mode == "allowlist" then return allowed(environment.allowed_hosts) end
  wrong("network_mode: there is no-network, public and allowlist, not " .. mode)
end

local function check_possible(doc, sections)
  local environment, verifier = sections.environment, sections.verifier
  if doc.steps ~= nil then refuse "it has several steps, each with an instruction of its own" end
  if value_of(environment, "os", "string", "linux") ~= "linux" then refuse("its environment is " .. environment.os .. ", not linux") end
  if value_of(environment, "gpus", "number", 0) > 0 then refuse "it needs a GPU" end
  if verifier.network_mode or sections.agent.network_mode then refuse "agent and verifier have networks of their own" end
  if verifier.environment ~= nil or verifier.environment_mode == "separate" then refuse "its verifier has an environment of its own" end
end

local function read(doc)
  local warnings, sections = json.array {}, {}
  warn_of_unknown(doc, "", warnings)
  for _, name in ipairs { "task", "verifier", "agent", "solution", "environment" } do
    sections[name] = value_of(doc, name, "table", json.object {})
    warn_of_unknown(sections[name], name, warnings)
  end
  check_possible(doc, sections)
  local environment = sections.environment
  if user_of(sections.agent) then warnings[#warnings + 1] = "agent.user has no effect: the agent is the image's user" end
  return {
    name = value_of(sections.task, "name", "string"), metadata = value_of(doc, "metadata", "table", json.object {}),
    build_timeout_s = positive(environment, "build_timeout_sec", 600), agent_timeout_s = positive(sections.agent, "timeout_sec", 600),
    verifier_timeout_s = positive(sections.verifier, "timeout_sec", 600), verifier_user = user_of(sections.verifier),
    verifier_env = environment_of(sections.verifier, "verifier", warnings), env = environment_of(environment, "environment", warnings),
    solution_env = environment_of(sections.solution, "solution", warnings), workdir = value_of(environment, "workdir", "string"),
    docker_image = value_of(environment, "docker_image", "string"), cpus = positive(environment, "cpus", 1),
    memory_mb = megabytes(environment, "memory", 2048), storage_mb = megabytes(environment, "storage", 10240),
    network = network_of(environment), warnings = warnings,
  }
end

--- Reads the text of a task.toml.
---@param text string
---@param where string      # its path, for errors
---@return agentbox.HarborSettings?
---@return agentbox.Err? err   # task: a mistake in it; unsupported: what cannot be done here
function M.read(text, where)
  local doc, problem = toml.decode(text)
  if not doc then return nil, err.new("task", where .. ": " .. problem.msg) end
  local ok, found = pcall(read, doc)
  if ok then return found end
  if type(found) ~= "table" then error(found, 0) end
  if found.wrong then return nil, err.new("task", where .. ": " .. found.wrong) end
  return nil, err.new("unsupported", ("%s: this task cannot be run here: %s"):format(where, found.refused or tostring(found)))
end

return M

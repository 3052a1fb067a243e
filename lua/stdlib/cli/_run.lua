--- From flags, task, environment and configuration to a rollout's options.
local M = {}

local function usage(msg)
  return nil, { code = "usage", msg = "run: " .. msg }
end

local function is_set(origin)
  return origin ~= "default" and origin:sub(1, 5) ~= "task "
end

-- The values of a section that somebody chose; the task's own are left to the task.
local function chosen(config, section)
  local out = {}
  for _, row in ipairs(config:list()) do
    local group, rest = row.key:match "^(%w+)%.(.+)$"
    if group == section and row.value ~= nil and is_set(row.origin) then
      local limit = rest:match "^limits%.(.+)$"
      if limit then
        out.limits = out.limits or {}
        out.limits[limit] = row.value
      else
        out[rest] = row.value
      end
    end
  end
  return out
end

local modes = { structured = true, shell = true, custom = true }

local function tools_of(value)
  if type(value) ~= "string" or modes[value] then return value end
  local names = {}
  for name in value:gmatch "[^,%s]+" do names[#names + 1] = name end
  return names
end

---The agent's settings, with the tool files of the configuration and of --tool.
---@param config agentbox.Config
---@param args table
---@return table? agent
---@return table? err
function M.agent(config, args)
  local agent = chosen(config, "agent")
  agent.tools = tools_of(agent.tools)
  local files, err = config:paths "tools"
  if not files then return nil, err end
  table.move(args.tool, 1, #args.tool, #files + 1, files)
  if #files > 0 then agent.custom_tools = files end
  return agent
end

-- A backend is a module, the lab's or ours.
local function backends()
  local names = {}
  for _, module in ipairs(require "agentbox.overlay".list() or {}) do
    local name = module.name:match "^agentbox%.backends%.(%l[%l%d_]*)$"
    if name then names[#names + 1] = name end
  end
  return names
end

---@async
---@param config agentbox.Config
---@param allow? string[]      # instead of the configuration's network
---@return table? sandbox
---@return table? err
function M.sandbox(config, allow)
  local sandbox = chosen(config, "sandbox")
  if allow and #allow > 0 then sandbox.network = { allow = allow } end
  if not sandbox.backend then return sandbox end
  local names = backends()
  for _, name in ipairs(names) do
    if name == sandbox.backend then return sandbox end
  end
  return usage(("no sandbox backend '%s'; there is %s"):format(sandbox.backend, table.concat(names, ", ")))
end

local function of_file(name)
  local model, err = require "agentbox.models.file".open(name)
  if not model then return usage(err.msg) end
  return model
end

local function served(config, max_tries)
  local section = config:section "model"
  local _, origin = config:value "model.base_url"
  local model, err = require "agentbox.model".configured {
    model = section.model, base_url = section.base_url,
    base_urls = not origin:find "^flag" and section.base_urls or nil,
    api_key = section.api_key, timeout_s = section.timeout_s, stream = section.stream, tokens = section.tokens,
    limit = section.limit, requests_per_minute = section.requests_per_minute, tokens_per_minute = section.tokens_per_minute,
    target_latency_s = section.target_latency_s, abort_path = section.abort_path, max_tries = max_tries,
    extra_headers = section.extra_headers, extra_body = section.extra_body,
    sampling = {
      temperature = section.temperature, top_p = section.top_p, max_tokens = section.max_tokens,
      seed = section.seed or config:value "run.seed",
    },
  }
  if err then err.msg = "model." .. err.msg end
  return model, err
end

-- The model of a name that is no server's: mock, scripted:FILE, lua:FILE or replay:TRAJ; false for a server's.
local function unserved(name, where)
  local kind, rest = name:match "^(%a+):(.*)$"
  local is_file = kind == "scripted" or kind == "lua" or kind == "replay"
  if name == "" or is_file and rest == "" then
    return usage(("%s %s"):format(where, is_file and kind .. ": lacks the file's name" or "is empty"))
  elseif name == "mock" then
    return require "agentbox.model".scripted { name = "mock", "I am a mock; I answer once and change nothing." }
  elseif require "agentbox.models.file".is(name) then
    return of_file(name)
  elseif kind == "replay" then
    return require "agentbox.model".replay { traj = rest }
  end
  return false
end

---The model that --model names: a server's model, mock, scripted:FILE, lua:FILE or replay:TRAJ.
---@async
---@param config agentbox.Config
---@param max_tries? integer   # how often a call to a server is tried
---@return agentbox.Model?
---@return table? err
function M.model(config, max_tries)
  local model, err = unserved(config:value "model.model", "--model")
  if model == false then return served(config, max_tries) end
  return model, err
end

local function of_section(role, section)
  if role == "agent" then return usage "models.agent: the agent's model is the section `model`, or --model" end
  if not section.model then return usage(("models.%s: model, its name, is missing"):format(role)) end
  local model, err = unserved(section.model, ("models.%s: model"):format(role))
  if model ~= false then return model, err end
  model, err = require "agentbox.model".configured(section)
  if err then err.msg = ("models.%s: %s"):format(role, err.msg) end
  return model, err
end

local function close_all(models)
  for _, model in pairs(models) do model:close() end
end

---The models that the section `models` names by role, for verifiers and tools that ask one. Closed together.
---@async
---@param config agentbox.Config
---@return table<string, agentbox.Model>?
---@return table? err
function M.roles(config)
  local sections, err = config:get "models"
  if err then return nil, err end
  local out = setmetatable({}, { __close = close_all })
  if require "agentbox.json".is_array(sections) then sections = nil end -- AgentBox's name for the list of students
  for role, section in pairs(sections or {}) do
    out[role], err = of_section(role, section)
    if not out[role] then
      close_all(out)
      return nil, err
    end
  end
  return out
end

---Reads the configuration and fixes every setting for this task.
---@async
---@param args table
---@param task? agentbox.Task
---@return agentbox.Config?
---@return table? err
function M.config(args, task)
  local config, err = require "agentbox.config".load()
  if not config then return nil, err end
  return config:resolve(args, task)
end

return M

--- From suite.json to a rollout's options. What a task says of itself wins over the suite, a flag over both.
local json = require "agentbox.json"

local M = {}

local AGENT = {
  "builtins", "step_timeout_s", "episode_timeout_s", "parallel_tool_calls", "drop_tools", "include_thinking", "step_penalty",
  "timeout_penalty", "max_steps_penalty",
}

local function plain(value)
  if value == json.null then return nil end
  if type(value) ~= "table" then return value end
  local out = {}
  for key, item in pairs(value) do out[key] = item end
  return out
end

local function agent_of(agent, task, over)
  local out = {}
  for _, name in ipairs(AGENT) do out[name] = plain(agent[name]) end
  if agent.system_prompt ~= json.null and agent.system_prompt ~= "" then out.system_prompt = agent.system_prompt end
  if not task.allowed_tools then out.tools = plain(agent.tools) end
  if not task.max_steps then out.max_steps = agent.max_steps end
  if over.max_steps then out.max_steps = over.max_steps end
  return out
end

local function limits_of(limits, task)
  local out = {}
  for _, name in ipairs { "cpu_count", "memory_mb", "pids_limit" } do
    local of_task = task.limits and task.limits[name]
    if of_task == nil then out[name] = plain(limits[name]) end
  end
  return out
end

local function sandbox_of(sandbox, task, over)
  local network = over.network
  if network == nil and task.network == nil then network = sandbox.limits.network_disabled and "none" or "full" end
  return {
    backend = over.backend, image = over.image or task.image or sandbox.image, network = network,
    workspace_dir = sandbox.workspace_dir, working_dir = sandbox.working_dir, env = plain(sandbox.env),
    labels = plain(sandbox.labels), ensure_pytest = sandbox.ensure_pytest, auto_pull = sandbox.auto_pull,
    limits = limits_of(sandbox.limits, task),
  }
end

local function checks_of(scoring)
  local out = {}
  for i, check in ipairs(scoring.setup_checks) do out[i] = plain(check) end
  return out
end

---@class agentbox.SuiteOverrides
---@field image? string
---@field backend? string
---@field network? string
---@field max_steps? integer

--- The options of one task's rollouts.
---@param manifest table
---@param task agentbox.Task
---@param over agentbox.SuiteOverrides
---@return { agent: table, sandbox: table, checks: table[] }
function M.of(manifest, task, over)
  return {
    agent = agent_of(manifest.agent, task, over), sandbox = sandbox_of(manifest.sandbox, task, over),
    checks = checks_of(manifest.scoring),
  }
end

return M

--- rollout/plan.lua: everything about a rollout that can be known, and be wrong, before a sandbox exists.
---
--- What the caller says wins over the task, the task over the defaults here. A mistake comes back as an error that
--- names it; nothing was started.
local agent = require "agentbox.agent"
local checks = require "agentbox.rollout.checks"
local err = require "agentbox.err"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local prompt = require "agentbox.prompt"
local rand = require "agentbox.sys.rand"
local schema = require "agentbox.schema"
local specs = require "agentbox.backends._spec"
local task = require "agentbox.task"
local tool = require "agentbox.tool"
local verify = require "agentbox.verify"

local M = {}

M.DEFAULTS = {
  max_steps = 40, step_timeout_s = 120, episode_timeout_s = 900, workspace = "/workspace", image = "host",
  network = "none", limits = { cpu_count = 1.0, memory_mb = 512, pids_limit = 256 },
  agent_cpu_s = 120, agent_memory_mb = 512, -- of Lua, for the agent and its hooks; tools have their own
}

--- AgentBox's AgentConfig and what this engine adds to it.
local AGENT = {
  name = { "string" }, run = { "function|string" }, tools = { "string|list" }, custom_tools = { "list" },
  builtins = { "boolean" }, system_prompt = { "string" }, prompt = { "string" },
  max_steps = { "integer", min = 0 }, step_timeout_s = { "number", min = 0 },
  episode_timeout_s = { "number", min = 0 }, parallel_tool_calls = { "boolean" }, include_thinking = { "boolean" },
  drop_tools = { "list", of = { "string" } }, drop_tools_prob = { "number", min = 0, max = 1 },
  step_penalty = { "number" }, timeout_penalty = { "number" }, max_steps_penalty = { "number" },
  max_tokens = { "integer", min = 0 }, max_model_calls = { "integer", min = 0 },
  max_repeats = { "integer", min = 0 }, max_malformed = { "integer", min = 0 }, max_empty = { "integer", min = 0 },
  before_turn = { "function" }, after_turn = { "function" }, on_answer = { "function" },
  on_tool_call = { "function" },
  cpu_s = { "number", min = 0 }, memory_mb = { "integer", min = 1 },
}

local SANDBOX = {
  backend = { "string" }, image = { "string" }, network = { "string|map|boolean" }, env = { "map" },
  limits = { "map" }, workspace = { "string" }, workspace_dir = { "string" }, working_dir = { "string" },
  user = { "string|integer" }, labels = { "map" }, ensure_pytest = { "boolean" }, auto_pull = { "boolean" },
  keep_on_failure = { "boolean" }, options = { "map" }, runtime = { "string" }, read_only = { "boolean" },
  pool = { "integer", min = 0 }, -- a run's; one rollout has none
}

--- The options of rollout.run and rollout.start.
M.OPTIONS = {
  task = { "any", required = true }, model = { "any", required = true }, agent = { "any" },
  tools = { "string|list" }, custom_tools = { "list" }, max_steps = { "integer", min = 0 },
  timeout_s = { "number", min = 0 }, step_timeout_s = { "number", min = 0 }, max_tokens = { "integer", min = 0 },
  sandbox = { "record", fields = SANDBOX, default = {} }, verifier = { "any" }, seed = { "integer" },
  sampling = { "map" }, run_id = { "string" }, id = { "string" }, attempt = { "integer", min = 0 },
  group = { "map" }, metadata = { "map" }, on_end = { "function" },
  checks = { "list", of = { "record", fields = checks.FIELDS } },
  from = { "record", fields = { traj = { "string|table", required = true }, turn = { "integer", min = 0, required = true } } },
}

local LOOP = { "max_repeats", "max_malformed", "max_empty", "before_turn", "after_turn", "on_answer",
  "on_tool_call" }

local function bad(text) return nil, err.new("config", text) end

local function agent_config(opts)
  local given = opts.agent
  if given == nil then given = {} end
  if type(given) == "string" or type(given) == "function" then given = { run = given } end
  local config, problem = schema.check(given, AGENT, { path = "agent" })
  if not config then return nil, problem end
  for _, name in ipairs { "tools", "custom_tools", "max_steps", "step_timeout_s", "max_tokens" } do
    if opts[name] ~= nil then config[name] = opts[name] end
  end
  config.episode_timeout_s = opts.timeout_s or config.episode_timeout_s
  return config
end

-- What of two rollouts says the same is one table: thousands of them wait.
local function shared()
  local last = {}
  return function(made)
    for key, value in pairs(made) do
      if last[key] ~= value then
        last = made
        return made
      end
    end
    for key in pairs(last) do
      if made[key] == nil then
        last = made
        return made
      end
    end
    return last
  end
end

local shared_limits, shared_agent_limits = shared(), shared()

local plain_loop

local function agent_of(config)
  local what = config.run or config.name
  local loop = {}
  for _, name in ipairs(LOOP) do loop[name] = config[name] end
  if what == nil or what == "tool_loop" then
    plain_loop = plain_loop or agent.tool_loop()
    return next(loop) and agent.tool_loop(loop) or plain_loop, nil, "tool_loop"
  end
  if next(loop) then return bad("agent: hooks and limits of the tool loop do not apply to another agent") end
  return agent.resolve(what)
end

local function model_of(what)
  if (type(what) == "table" or type(what) == "userdata") and what.complete then return what end
  if type(what) == "string" then what = { model = what } end
  if type(what) ~= "table" then return bad("model: must be a model, a name or the options of model.open") end
  return require("agentbox.model").open(what)
end

local function merged(...)
  local out = {}
  for i = 1, select("#", ...) do
    for key, value in pairs((select(i, ...)) or {}) do
      if value ~= json.null then out[key] = value end
    end
  end
  return out
end

--- "agentbox-<run>-<task>-<random>", at most 63 characters of what any backend allows in a name.
---@param run_id string
---@param task_id string
---@return string
function M.sandbox_name(run_id, task_id)
  local slug = task_id:lower():gsub("[^%w_.-]+", "-"):sub(1, 24):gsub("^-+", ""):gsub("-+$", "")
  if slug == "" then slug = "task" end
  local run = run_id:gsub("-", ""):gsub("[^%w]", ""):sub(1, 8)
  local tail = ("%02x%02x"):format(rand.bytes(2):byte(1, 2))
  return ("agentbox-%s-%s-%s"):format(run, slug, tail):sub(1, 63)
end

local function network_of(given, limits)
  if given == true then return "full" end
  if given == false then return "none" end
  if given == nil and limits.network_disabled == false then return "full" end
  return given
end

--- AgentBox's names become the sandbox's own.
local function sandbox_spec(opts, the_task, run_id)
  local given = opts.sandbox
  local limits = merged(M.DEFAULTS.limits, the_task.limits, given.limits)
  local spec = {
    backend = given.backend, image = given.image or the_task.image or M.DEFAULTS.image,
    network = network_of(given.network, given.limits or {}) or network_of(the_task.network, the_task.limits or {})
      or M.DEFAULTS.network,
    env = merged(the_task.env, given.env), workspace = given.workspace or given.workspace_dir or the_task.workspace or M.DEFAULTS.workspace,
    user = given.user, runtime = given.runtime, read_only = given.read_only, name = M.sandbox_name(run_id, the_task.task_id),
  }
  limits.network_disabled = nil
  spec.limits = limits
  local workdir = given.working_dir or spec.workspace
  local fine, wrong = specs.check(spec)
  if not fine then return bad("sandbox." .. wrong) end
  if workdir:sub(1, 1) ~= "/" then return bad("sandbox.working_dir: must be an absolute path: " .. workdir) end
  return spec, nil, workdir
end

---@class agentbox.Plan
---@field task agentbox.Task
---@field model agentbox.Model
---@field owns_model? boolean
---@field agent function
---@field agent_name string
---@field tools agentbox.ToolSet
---@field tool_mode string
---@field verifier function
---@field verifier_name string
---@field verifier_limits? table
---@field spec table
---@field workdir string         # where commands run, the workspace unless told otherwise
---@field prompt agentbox.Message[]
---@field config table
---@field limits table
---@field agent_limits agentbox.GuardLimits
---@field run_id string
---@field id string
---@field seed? integer

local function tools_of(config, the_task, seed)
  -- A task's list is exact; a caller's own choice wins over it.
  local allowed = config.tools == nil and the_task.allowed_tools or nil
  local set, problem = tool.select {
    mode = config.tools, allowed = allowed, custom = config.custom_tools, builtins = config.builtins,
    drop = config.drop_tools, drop_prob = config.drop_tools_prob, seed = seed,
  }
  local mode = allowed or config.tools or "structured"
  return set, problem, type(mode) == "table" and json.encode(json.array(mode)) or mode
end

local function complete(plan, opts)
  local config, the_task = plan.config, plan.task
  local problem
  plan.agent, problem, plan.agent_name = agent_of(config)
  if not plan.agent then return nil, problem end
  plan.tools, problem, plan.tool_mode = tools_of(config, the_task, opts.seed)
  if not plan.tools then return nil, problem end
  plan.verifier, problem, plan.verifier_name, plan.verifier_limits = verify.resolve(opts.verifier, the_task.verifier)
  if plan.verifier and opts.verifier == nil then
    local fine
    fine, problem = verify.check(the_task)
    if not fine then plan.verifier = nil end
  end
  if not plan.verifier then return nil, problem.code == "task" and err.wrap(problem, "task " .. the_task.task_id) or problem end
  plan.spec, problem, plan.workdir = sandbox_spec(opts, the_task, plan.run_id)
  if not plan.spec then return nil, problem end
  plan.prompt, problem = prompt.build {
    task = the_task, workspace = plan.spec.workspace, system_prompt = config.system_prompt,
    name = config.prompt or (plan.tool_mode == "shell" and "shell" or "structured"),
  }
  if not plan.prompt then return nil, problem end
  plan.limits = shared_limits {
    max_turns = config.max_steps or the_task.max_steps or M.DEFAULTS.max_steps, max_tokens = config.max_tokens,
    max_model_calls = config.max_model_calls, step_timeout_s = config.step_timeout_s or M.DEFAULTS.step_timeout_s,
    episode_timeout_s = config.episode_timeout_s or the_task.timeout_s or M.DEFAULTS.episode_timeout_s,
  }
  plan.agent_limits = shared_agent_limits {
    cpu_s = config.cpu_s or M.DEFAULTS.agent_cpu_s,
    memory_bytes = (config.memory_mb or M.DEFAULTS.agent_memory_mb) << 20,
  }
  return plan
end

--- Makes the plan.
---@async
---@param opts table    # checked against OPTIONS
---@return agentbox.Plan?
---@return agentbox.Err?
function M.make(opts)
  local the_task, problem = task.resolve(opts.task)
  if not the_task then return nil, problem end
  local config
  config, problem = agent_config(opts)
  if not config then return nil, problem end
  local run_id = opts.run_id or rand.uuid4()
  local plan = {
    task = the_task, config = config, run_id = run_id, id = opts.id or run_id, seed = opts.seed,
    sampling = opts.sampling,
  }
  local done
  done, problem = complete(plan, opts)
  if not done then return nil, problem end
  plan.model, problem = model_of(opts.model)
  if not plan.model then return nil, problem end
  plan.owns_model = plan.model ~= opts.model or nil -- a table of 16 is half as large as one of 17
  return plan
end

--- A number for seeding what is random in a rollout, from its seed and its own id.
---@param plan agentbox.Plan
---@return integer
function M.seed_of(plan)
  local text = ("%s\0%s"):format(plan.seed or "", plan.seed and plan.id or plan.run_id)
  return tonumber(hash.sha256(text):sub(1, 15), 16)
end

return M

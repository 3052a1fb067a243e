--- What a run can be told, checked once before anything starts.
local err = require "agentbox.err"
local model = require "agentbox.model"
local pool = require "agentbox.sandbox.pool"
local rank = require "agentbox.runner.rank"
local schema = require "agentbox.schema"

local M = {}

--- Options that every rollout of the run gets as they are.
M.ROLLOUT = {
  agent = { "any" }, tools = { "string|list" }, custom_tools = { "list" }, max_steps = { "integer", min = 0 },
  timeout_s = { "number", min = 0 }, step_timeout_s = { "number", min = 0 }, max_tokens = { "integer", min = 0 },
  sandbox = { "map" }, verifier = { "any" }, sampling = { "map" }, metadata = { "map" },
}

local LIMITS = {
  creating = { "integer", min = 1 }, commands = { "integer", min = 1 }, judges = { "integer", min = 1 },
}

local POLICY = { version = { "integer", required = true, min = 0 }, model = { "string" } }

local OPTIONS = {
  tasks = { "any", required = true }, model = { "any" }, models = { "map" },
  n = { "integer", min = 1 }, group_size = { "integer", min = 1 }, limit = { "integer", min = 0 },
  concurrency = { "integer", min = 1, default = 8 }, limits = { "record", fields = LIMITS, default = {} },
  out = { "string" }, run_id = { "string" }, resume = { "boolean" }, agentbox_json = { "boolean" }, meta = { "map" },
  full_wait_s = { "number", min = 0, default = 3600 },
  seed = { "integer" }, prepare = { "function" }, schedule = { "function" }, lookahead = { "integer", min = 1, default = 4 },
  attempts = { "integer", min = 1, default = 3 }, retry_wait_s = { "number", min = 0, default = 1 },
  max_errors = { "number", min = 0, default = 0.5 }, quarantine = { "integer", min = 1, default = 4 },
  oversample = { "integer", min = 0, default = 0 }, min_group = { "integer", min = 1, default = 2 },
  rank = { "function|map" },
  straggler = { "record", fields = {
    factor = { "number", min = 1, default = 3 }, busy_factor = { "number", min = 1 }, min_s = { "number", min = 0, default = 10 },
  } },
  group_timeout_s = { "number", min = 0.001 }, run_timeout_s = { "number", min = 0.001 },
  max_lead = { "integer", min = 1 }, max_staleness = { "integer", min = 0 },
  policy = { "record", fields = POLICY }, inflight = { "string", enum = { "finish", "restart" }, default = "finish" },
  metrics = { "string|integer|map" }, total = { "integer", min = 0 }, retry_errors = { "boolean" }, on_event = { "function" },
}
for name, field in pairs(M.ROLLOUT) do OPTIONS[name] = field end

--- The shape of what `run:policy` takes.
M.POLICY = POLICY

-- The model of each role; the agent's is `model`, or `models.agent`.
local function models_of(opts)
  local given = {}
  for role, what in pairs(opts.models or {}) do given[role] = what end
  if opts.model ~= nil then
    if given.agent ~= nil then return nil, err.new("config", "runner: give model or models.agent, not both") end
    given.agent = opts.model
  end
  if given.agent == nil then return nil, err.new("config", "runner: no model: give model or models.agent") end
  local out = {}
  for _, role in ipairs(schema.names(given)) do
    local problem
    out[role], problem = model.resolve(given[role])
    if not out[role] then return nil, err.wrap(problem, "models." .. role) end
  end
  return out
end

local function pool_problem(box)
  local size = box and box.pool or 0
  if math.type(size) ~= "integer" or size < 0 or size > pool.MAX_SIZE then
    return err.new("config", ("runner: sandbox.pool: a number from 0 to %d expected"):format(pool.MAX_SIZE))
  elseif size > 0 and (box.backend or "native") ~= "native" then
    return err.new("config", "runner: sandbox.pool: only native sandboxes are kept ready, not those of " .. box.backend)
  end
end

-- Rollouts of a task, and how they are divided into groups.
local function divide(opts)
  local size = opts.group_size or opts.n or 1
  local n = opts.n or size
  if n % size ~= 0 then
    return nil, err.new("config", ("runner: n (%d) is not a multiple of group_size (%d)"):format(n, size))
  end
  opts.size, opts.per_task = size, n // size
  opts.grouping = opts.group_size ~= nil or n > 1
  return true
end

--- The checked options, with `models`, `size`, `per_task` and `grouping` worked out.
---@param given table
---@return table? opts
---@return agentbox.Err? err
function M.check(given)
  local opts = schema.options(given, OPTIONS, "runner.start", 2)
  local ok, problem = divide(opts)
  problem = problem or pool_problem(opts.sandbox)
  if not ok or problem then return nil, problem end
  opts.models, problem = models_of(opts)
  if not opts.models then return nil, problem end
  opts.rank, problem = rank.option(opts.rank)
  if problem then return nil, problem end
  if opts.resume and not (opts.out and opts.run_id) then
    return nil, err.new("config", "runner: resume needs out and run_id")
  end
  if not opts.grouping then
    for _, name in ipairs { "oversample", "straggler", "group_timeout_s", "rank" } do
      local value = opts[name]
      if value and value ~= 0 then
        return nil, err.new("config", ("runner: %s is about groups: give group_size or n"):format(name))
      end
    end
  end
  return opts
end

return M

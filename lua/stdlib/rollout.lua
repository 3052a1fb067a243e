--- rollout.lua: one rollout, from a task to a trajectory.
---
---     plan ─► stage (sandbox, files, setup, freeze) ─► agent's sandbox ─► agent ─► agent's processes killed
---          ─► verifier in a fresh sandbox ─► outcome ─► record
---
--- Everything that can be wrong with the input is an error before anything starts. From then on a rollout always ends as a
--- trajectory, whatever fails, and everything it opened is closed on every path.
local agent = require "agentbox.agent"
local artifacts = require "agentbox.rollout.artifacts"
local budget = require "agentbox.budget"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local outcome = require "agentbox.outcome"
local plans = require "agentbox.rollout.plan"
local rand = require "agentbox.sys.rand"
local record = require "agentbox.record"
local schema = require "agentbox.schema"
local stage = require "agentbox.stage"
local time = require "agentbox.time"
local verify = require "agentbox.verify"

local M = {}

--- Over the episode's time, what a custom agent that looks at no clock gets before it is stopped.
local EPISODE_GRACE_S = 10

---@class agentbox.RolloutOpts
---@field task string|table          # a path, the fields of a task, or a task
---@field model any                  # a model, a name, or the options of model.open
---@field agent? any                 # a name, a function, or AgentBox's AgentConfig with the tool loop's options
---@field tools? string|string[]     # structured, shell, custom or names
---@field custom_tools? table        # tools or files
---@field max_steps? integer         # turns that use tools; wins over the task's
---@field timeout_s? number          # of the whole episode
---@field step_timeout_s? number     # of one model call and of one turn's tools
---@field max_tokens? integer        # prompt and completion of all calls together
---@field sandbox? table             # backend, image, network, limits, env, workspace, user
---@field verifier? any              # instead of the task's: a function, a module, a Lua file
---@field seed? integer
---@field sampling? table
---@field run_id? string
---@field id? string                 # unique in the run
---@field attempt? integer
---@field group? table
---@field metadata? table
---@field on_end? fun(traj: agentbox.Traj)   # called once, however the rollout ends

---@class agentbox.Rollout
---@field plan agentbox.Plan
---@field ctx? agentbox.Ctx
---@field stop? agentbox.Stop
---@field traj? agentbox.Traj
local Rollout = {}
Rollout.__index = Rollout

-- ---------------------------------------------------------------- before the agent

local function new_record(plan, opts)
  local rec = record.new {
    run_id = plan.run_id, id = plan.id, attempt = opts.attempt, group = opts.group, task = plan.task,
    agent = { name = plan.agent_name }, model = plan.model:describe(), tools = plan.tools:wire(),
    tool_mode = plan.tool_mode, seed = plan.seed, started = time.now(),
  }
  local origins = plan.tools:origins()
  if #origins > 0 then rec:modules(origins) end
  return rec
end

--- Which stop an error before the agent's first turn is.
local function stop_of_error(problem)
  if problem.code == "task" then return outcome.stop("task_error", problem) end
  if problem.code == "verifier" then return outcome.stop("scorer_error", problem) end
  local reason = err.class(problem) == "sandbox" and "sandbox_error" or "tool_error"
  return outcome.stop(reason, { class = "sandbox", msg = tostring(problem.msg) })
end

--- Seeds the task and gives the agent its sandbox.
function Rollout:_boot()
  local plan = self.plan
  local problem
  self.stage, problem = stage.open(plan.task, plan.spec, {
    workspace = plan.spec.workspace, workdir = plan.workdir, user = plan.spec.user,
  })
  if not self.stage then
    self.failure_kind = "seed"
    return nil, problem
  end
  self.sandbox, problem = self.stage:fresh()
  return self.sandbox, problem
end

function Rollout:_new_ctx()
  local plan = self.plan
  self.budget = budget.new(plan.limits)
  local ctx = agent.ctx {
    task = plan.task, sandbox = self.sandbox, model = plan.model, tools = plan.tools, budget = self.budget,
    rand = rand.new(plans.seed_of(plan)), rec = self.rec, workspace = plan.spec.workspace, workdir = plan.workdir, user = plan.spec.user,
    one_by_one = plan.config.parallel_tool_calls == false, keep_thinking = plan.config.include_thinking ~= false,
    session = plan.id, sampling = plan.sampling, run_id = plan.run_id, seed = plan.seed,
    pause = function() self:_pause() end,
  }
  for _, message in ipairs(plan.prompt) do ctx:say(message, "prompt") end
  return ctx
end

-- ---------------------------------------------------------------- the agent

--- Called by the agent at the top of a turn: waits until somebody asks for that turn.
function Rollout:_pause()
  while self.allowance <= 0 do
    self.paused = true
    if self.waiter then self.waiter:wake() end
    fiber.park()
  end
  self.paused, self.allowance = false, self.allowance - 1
end

local function agent_body(self)
  local signal <close> = setmetatable({}, { __close = function() -- luacheck: ignore
    self.agent_done = true
    if self.waiter then self.waiter:wake() end
  end })
  local ok, reason, detail = xpcall(self.plan.agent, function(problem)
    if err.is(problem) then return problem end
    return err.new("defect", tostring(problem), { traceback = debug.traceback(tostring(problem), 2) })
  end, self.ctx)
  if ok then
    self.stop = outcome.stop(type(reason) == "string" and reason or "final_answer", detail)
  elseif err.infra(reason) then
    self.stop = stop_of_error(reason)
  else
    self.rec:event("error", reason.traceback or tostring(reason))
    self.stop = outcome.stop("tool_error", { class = "engine", msg = "the agent failed: " .. tostring(reason.msg) })
  end
end

function Rollout:_start_agent()
  self.ctx = self:_new_ctx()
  self.agent_fiber = fiber.spawn(agent_body, self)
  self.agent_fiber:set_deadline(self.budget.deadline + EPISODE_GRACE_S)
end

--- Lets the agent take `turns` turns and waits until it has, or has ended.
function Rollout:_advance(turns)
  self.allowance = turns
  self.waiter = fiber.current()
  if not self.agent_fiber then
    self:_start_agent()
  elseif self.paused then
    self.paused = false
    self.agent_fiber:wake()
  end
  while not self.agent_done and not self.paused do fiber.park() end
  self.waiter = nil
  if self.agent_done and not self.stop then
    self.stop = outcome.stop("wall_timeout", "the episode's time was over")
  end
end

-- ---------------------------------------------------------------- after the agent

--- No process of the agent may live on while its work is judged.
function Rollout:_settle()
  self:_close_tools()
  local problem
  self.remains, problem = self.stage:settle(self.sandbox)
  return self.remains, problem
end

function Rollout:_close_tools()
  if self.tools_closed then return end
  self.tools_closed = true
  for _, text in ipairs(self.plan.tools:close()) do self.rec:event("warn", text) end
end

function Rollout:_verify()
  local plan = self.plan
  local began = time.monotonic()
  local verdict, problem, tamper = verify.run {
    task = plan.task, stage = self.stage, remains = self.remains, verifier = plan.verifier, name = plan.verifier_name,
    limits = plan.verifier_limits, user = plan.spec.user, traj = {
      task_id = plan.task.task_id, messages = self.ctx.messages, stop_reason = self.stop.reason,
      steps = self.budget.turns,
    },
  }
  self.score_s, self.tamper = time.monotonic() - began, tamper
  if verdict then
    self.verdict = verdict
    return
  end
  self.rec:event("error", problem.traceback or tostring(problem.msg))
  local class = err.class(problem)
  if class == "policy" or class == nil then class = "verifier" end
  local reason = class == "sandbox" and "sandbox_error" or class == "task" and "task_error" or "scorer_error"
  self.stop = outcome.stop(reason, { class = class, msg = problem.msg })
end

--- From the agent's stop to a verdict, as far as the infrastructure lets us.
function Rollout:_judge()
  if not outcome.verifiable(self.stop) then return end
  local ok, problem = self:_settle()
  if not ok then
    self.stop = outcome.stop("sandbox_error", problem)
    return
  end
  self.artifacts = artifacts.collect(self.remains, self.plan.spec.workspace, self.plan.task.artifacts, self.rec)
  self:_verify()
end

-- ---------------------------------------------------------------- the record

local function ms(seconds) return seconds and math.floor(seconds * 1000 + 0.5) or nil end

local function verify_part(verdict)
  if not verdict then return nil end
  return {
    success = verdict.success, exit_code = verdict.exit_code, stdout = verdict.stdout, stderr = verdict.stderr,
    duration_s = verdict.duration_s, command = verdict.command, report = verdict.report, text = verdict.text,
    timed_out = verdict.timed_out,
  }
end

function Rollout:_metadata()
  local plan = self.plan
  local out = {}
  for key, value in pairs(self.opts.metadata or {}) do out[key] = value end
  out.task_metadata, out.tools_available = plan.task.metadata, plan.tools:names()
  out.failure_kind = self.failure_kind
  return out
end

function Rollout:_timing()
  local spent = self.ctx and self.ctx.spent or {}
  return {
    boot_ms = ms(self.stage and self.stage.boot_s), seed_ms = ms(self.stage and self.stage.seed_s),
    model_ms = ms(spent.model_s), tool_ms = ms(spent.tool_s), score_ms = ms(self.score_s),
    total_ms = ms(time.monotonic() - self.began),
  }
end

--- Ends the rollout as a trajectory. What is not known by now stays out.
function Rollout:_conclude()
  local plan, verdict = self.plan, self.verdict
  local stop = self.stop or outcome.stop("user_cancel", "stopped from outside")
  local steps = self.budget and self.budget.turns or 0
  local out = outcome.of(stop, verdict, steps, plan.config)
  if not out.scored then verdict = nil end
  self.traj = self.rec:finish {
    status = out.status, final_status = out.final_status,
    stop = { reason = stop.reason, class = out.class, detail = stop.detail },
    outcome = out.raw, reward = {
      scored = out.scored, value = out.reward, outcome = out.raw, components = verdict and verdict.components,
      scorer = { name = plan.verifier_name },
    },
    verify = verify_part(self.verdict), timing = self:_timing(),
    sandbox = { kind = self.sandbox and self.sandbox.kind or plan.spec.backend, id = plan.spec.name, image = plan.spec.image },
    error = out.final_status == "error" and (stop.detail or stop.reason) or nil,
    metadata = self:_metadata(), tamper = self.tamper, artifacts = self.artifacts,
  }
  self:_release()
  if self.opts.on_end then self.opts.on_end(self.traj) end
  return self.traj
end

function Rollout:_release()
  if self.agent_fiber and not self.agent_done then
    self.agent_fiber:cancel()
    self.agent_fiber:join(5)
  end
  self:_close_tools()
  if self.remains then self.remains:close() end
  if self.sandbox then self.sandbox:close() end
  if self.stage then self.stage:close() end
  if self.plan.owns_model and self.plan.model.close then self.plan.model:close() end
  self.sandbox, self.stage, self.remains = nil, nil, nil
end

-- ---------------------------------------------------------------- what callers see

--- Seeds, if that was not done. A failure is kept as the rollout's stop.
function Rollout:_prepare()
  if self.prepared then return end
  self.prepared = true
  local sb, problem = self:_boot()
  if not sb then self.stop = stop_of_error(problem) end
end

--- Lets the agent take up to n turns. The rollout may end before.
---@async
---@param n? integer   # 1 unless given
---@return boolean going   # false once the agent has stopped
function Rollout:step(n)
  if self.traj then return false end
  self:_prepare()
  if not self.stop then self:_advance(n or 1) end
  return self.stop == nil
end

--- Lets the agent finish, verifies, records, closes.
---@async
---@return agentbox.Traj
function Rollout:finish()
  if self.traj then return self.traj end
  self:step(math.huge)
  self:_judge()
  return self:_conclude()
end

--- Ends the rollout where it is, unscored; what was recorded so far is in the trajectory.
---@async
---@param reason? "user_cancel"|"shutdown"
---@return agentbox.Traj
function Rollout:abort(reason)
  if self.traj then return self.traj end
  self.stop = outcome.stop(reason or "user_cancel", "stopped from outside")
  return self:_conclude()
end

function Rollout:__close()
  if not self.traj then self:abort() end
end

--- Starts a rollout that is stepped by hand. Close it, or finish it.
---@async
---@param opts table     # see run
---@return agentbox.Rollout? rollout
---@return agentbox.Err? err     # the task, the tools, the model's settings: nothing was started
function M.start(opts)
  opts = schema.options(opts, plans.OPTIONS, "rollout")
  local plan, problem = plans.make(opts)
  if not plan then return nil, problem end
  return setmetatable({
    plan = plan, opts = opts, rec = new_record(plan, opts), began = time.monotonic(), allowance = 0, paused = false,
  }, Rollout)
end

--- Runs a rollout to its end.
---
--- Raises on unknown options. Returns nil, err when the input is wrong (a bad task file, an unknown tool, a model that
--- cannot be opened): nothing was started. Otherwise returns a trajectory, also when the sandbox, the model or the
--- verifier failed; then it is unscored and says why.
---@async
---@param opts agentbox.RolloutOpts
---@return agentbox.Traj? traj
---@return agentbox.Err? err
function M.run(opts)
  local ro <close>, problem = M.start(opts) -- luacheck: ignore
  if not ro then return nil, problem end
  return ro:finish()
end

return M

--- rollout.lua: one rollout, from a task to a trajectory.
---
---     plan ─► stage (sandbox, files, setup) ─► agent's sandbox ─► agent ─► its sandbox frozen, its processes dead
---          ─► verifier in a fresh sandbox ─► outcome ─► record
---
--- Everything that can be wrong with the input is an error before anything starts (rollout/plan.lua). From then on a
--- rollout always ends as a trajectory, whatever fails, and everything it opened is closed on every path.
local agent = require "agentbox.agent"
local artifacts = require "agentbox.rollout.artifacts"
local budget = require "agentbox.budget"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local forks = require "agentbox.rollout.fork"
local limits = require "agentbox.limits"
local outcome = require "agentbox.outcome"
local performance = require "agentbox.rollout.performance"
local plans = require "agentbox.rollout.plan"
local rand = require "agentbox.sys.rand"
local record = require "agentbox.record"
local result = require "agentbox.rollout.result"
local schema = require "agentbox.schema"
local stage = require "agentbox.stage"
local time = require "agentbox.time"
local verify = require "agentbox.verify"

local M = {}

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
---@field checks? agentbox.SetupCheck[]      # of the seeded sandbox: { name, command, success_exit_code, timeout_s, required }
---@field from? { traj: string|agentbox.Traj, turn: integer }   # go on after this turn of a stored one, which is played again

---@class agentbox.Rollout
---@field plan agentbox.Plan
---@field ctx? agentbox.Ctx          # once the sandbox is there; it has the agent's performance
---@field stop? agentbox.Stop        # once the agent has ended, or something failed
---@field traj? agentbox.Traj        # at the end
---@field ending? { reason: string, detail: string }   # what an abort says, when somebody said why
local Rollout = {}
Rollout.__index = Rollout

-- ---------------------------------------------------------------- before the agent

local function new_record(plan, opts)
  local rec = record.new {
    run_id = plan.run_id, id = plan.id, attempt = opts.attempt, group = opts.group, task = plan.task,
    agent = { name = plan.agent_name }, model = plan.model:describe(), tools = plan.tools:wire(),
    tool_mode = plan.tool_mode, seed = plan.seed, started = time.now(),
    scratch = fiber.current():locals().scratch, -- a run's
  }
  local origins = plan.tools:origins()
  if #origins > 0 then rec:modules(origins) end
  return rec
end

--- Which stop a failure before the agent's first turn is.
local function stop_of_boot(problem)
  if problem.code == "task" then return outcome.stop("task_error", problem) end
  return outcome.stop("sandbox_error", { class = "sandbox", msg = tostring(problem.msg) })
end

function Rollout:_new_ctx()
  local plan = self.plan
  local ctx = agent.ctx {
    task = plan.task, sandbox = self.sandbox, model = plan.model, tools = plan.tools, rec = self.rec,
    budget = self.parent and forks.budget(self.parent, plan) or budget.new(plan.limits), rand = rand.new(plans.seed_of(plan)),
    workspace = plan.spec.workspace, workdir = plan.workdir, session = plan.id,
  }
  ctx.user, ctx.seed, ctx.sampling = plan.spec.user, plan.seed, plan.sampling
  if plan.config.parallel_tool_calls == false then ctx.one_by_one = true end
  if plan.config.include_thinking == false then ctx.keep_thinking = false end
  for _, message in ipairs(plan.prompt) do ctx:say(message, "prompt") end
  plan.prompt = nil -- the context has it
  ctx.performance = performance.new(plan.agent, ctx, plan.agent_limits)
  return ctx
end

--- Seeds the task, checks the environment where the caller has checks, and gives the agent its sandbox and its context.
--- A failure is the rollout's stop.
function Rollout:_boot()
  local plan, problem = self.plan
  self.stage, problem = stage.open(plan.task, plan.spec, {
    workspace = plan.spec.workspace, workdir = plan.workdir, user = plan.spec.user,
  })
  if not self.stage then
    self.failure_kind = "seed"
    self.stop = stop_of_boot(problem)
    return
  end
  self.sandbox, problem = self.stage:fresh()
  if not self.sandbox then
    self.stop = stop_of_boot(problem)
    return
  end
  local fine
  fine, problem = self:_check_setup()
  if not fine then
    self.failure_kind, self.failed_check = problem.check and "setup_check" or nil, problem.check
    self.stop = stop_of_boot(problem)
    return
  end
  self.ctx = self:_new_ctx()
end

function Rollout:_check_setup()
  local checks = self.opts.checks
  if not checks then return true end
  return require "agentbox.rollout.checks".run(self.sandbox, checks, self.plan.workdir, function(line)
    self.rec:event("warn", line)
  end)
end

-- ---------------------------------------------------------------- after the agent

function Rollout:_close_tools()
  if self.tools_closed then return end
  self.tools_closed = true
  for _, text in ipairs(self.plan.tools:close()) do self.rec:event("warn", text) end
end

--- Why no verdict could be had.
local function stop_of_verify(problem)
  local class = err.class(problem)
  if class ~= "sandbox" and class ~= "task" then class = "verifier" end
  local reasons = { sandbox = "sandbox_error", task = "task_error", verifier = "scorer_error" }
  return outcome.stop(reasons[class], { class = class, msg = problem.msg })
end

function Rollout:_verify()
  local judging <close> = limits.enter "judges" -- luacheck: ignore
  local commands <close> = limits.enter "commands" -- luacheck: ignore
  local plan, began = self.plan, time.monotonic()
  local problem
  self.verdict, problem, self.tamper = verify.run {
    task = plan.task, stage = self.stage, remains = self.remains, verifier = plan.verifier, name = plan.verifier_name,
    limits = plan.verifier_limits, user = plan.spec.user, rec = self.rec, traj = {
      task_id = plan.task.task_id, messages = self.ctx.messages, stop_reason = self.stop.reason,
      steps = self.ctx.budget.turns,
    },
  }
  self.score_s = time.monotonic() - began
  if self.verdict then return end
  self.rec:event("error", problem.traceback or tostring(problem.msg))
  self.stop = stop_of_verify(problem)
end

--- From the agent's stop to a verdict, as far as the infrastructure lets us. No process of the agent lives on while
--- its work is judged.
function Rollout:_judge()
  if not outcome.verifiable(self.stop) then return end
  self:_close_tools()
  local problem
  self.remains, problem = self.stage:settle(self.sandbox)
  if not self.remains then
    self.stop = outcome.stop("sandbox_error", problem)
    return
  end
  local plan = self.plan
  self.artifacts = artifacts.collect(self.remains, plan.spec.workspace, plan.task.artifacts, self.rec)
  self:_verify()
end

-- ---------------------------------------------------------------- the end

function Rollout:_release()
  if self.remains then self.remains:close() end
  if self.sandbox then self.sandbox:close() end
  if self.stage then self.stage:close() end
  if self.plan.owns_model and self.plan.model.close then self.plan.model:close() end
  self.remains, self.sandbox, self.stage = nil, nil, nil
end

--- Ends the rollout as a trajectory. What is not known by now stays out.
function Rollout:_conclude()
  if self.ctx then self.ctx.performance:close() end
  self:_close_tools()
  self.traj = self.rec:finish(result.of(self))
  self:_release()
  if self.opts.on_end then self.opts.on_end(self.traj) end
  return self.traj
end

-- ---------------------------------------------------------------- what callers see

--- Lets the agent take up to n turns; seeds first. The rollout may end before.
---@async
---@param n? integer       # 1 unless given
---@return boolean going   # false once the agent has stopped
function Rollout:step(n)
  if self.traj then return false end
  if not self.booted then
    self.booted = true
    self:_boot()
    if self.traj then -- ended by another fiber meanwhile
      self:_release()
      return false
    end
  end
  if not self.stop then
    local agents = self.ctx.performance
    agents:advance(n or 1)
    self.stop = self.stop or agents.stop
  end
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
  local ending = self.ending or {}
  self.stop = outcome.stop(reason or ending.reason or "user_cancel", ending.detail or "stopped from outside")
  return self:_conclude()
end

function Rollout:__close()
  if not self.traj then self:abort() end
end

-- ---------------------------------------------------------------- forks

--- A rollout that goes on from here in a sandbox of its own, which it takes.
local function child(parent, plan, opts, sb)
  plan.prompt = forks.prompt(parent)
  local self = setmetatable({
    plan = plan, opts = forks.options(parent, opts), began = time.monotonic(), booted = true, parent = parent,
    stage = parent.stage:share(), sandbox = sb,
  }, Rollout)
  self.rec = new_record(plan, self.opts)
  self.ctx = self:_new_ctx()
  return self
end

--- Rollouts that go on from where this one is, between two turns: with its files, its messages and what is left of its
--- budgets. Each has a sandbox, an id and sampling seeds of its own; its agent and its tools are started anew. This one
--- can go on, too. Running processes are not forked. `metadata.parent` of their trajectories names run, id and turn.
---@async
---@param n? integer                       # 1 unless given
---@param opts? { model?: agentbox.Model } # instead of this one's
---@return agentbox.Forks? forks           # a list; closing it closes them
---@return agentbox.Err? err
function Rollout:fork(n, opts)
  opts = schema.options(opts or {}, { model = { "any" } }, "rollout:fork")
  if not self.booted then self:step(0) end
  local problem = forks.refusal(self)
  if problem then return nil, problem end
  local boxes
  boxes, problem = self.sandbox:fork(n)
  if not boxes then return nil, problem end
  local list = {}
  for i, sb in ipairs(boxes) do list[i] = child(self, forks.plan(self, self.plan, i, opts.model), self.opts, sb) end
  return forks.list(list)
end

--- Becomes one of its forks: what that one did, its files and, if it has ended, its trajectory are this one's from now on,
--- and what this one would have done is given up.
---@async
---@param fork? agentbox.Rollout   # nil, as when none was the best: nothing happens
function Rollout:adopt(fork)
  if not fork then return end
  if fork.parent ~= self then error("rollout:adopt: not a fork of this rollout", 2) end
  if self.traj then error("rollout:adopt: the rollout has ended", 2) end
  if self.ctx then self.ctx.performance:close() end
  self:_close_tools()
  local on_end, parent, owns_model = self.opts.on_end, self.parent, self.plan.owns_model
  self.plan.owns_model = nil
  self:_release()
  for key in pairs(self) do self[key] = nil end
  for key, value in pairs(fork) do self[key] = value end
  self.opts.on_end, self.parent, self.plan.owns_model = on_end, parent, owns_model
  forks.give_up(fork)
  if not self.traj then return end
  self:_release()
  if on_end then on_end(self.traj) end
end

-- Plays a stored rollout again up to a turn, and gives n that go on from there.
local function restored(opts, n, plan_of)
  local base_opts, problem = forks.replay(opts)
  if not base_opts then return nil, problem end
  local base <close>, wrong = M.start(base_opts)
  if not base then return nil, wrong end
  base:step(opts.from.turn)
  if base.stop then return nil, forks.not_reached(base, opts.from.turn) end
  problem = forks.refusal(base)
  if problem then return nil, problem end
  local boxes
  boxes, problem = base.sandbox:fork(n)
  if not boxes then return nil, problem end
  local list = {}
  for i, sb in ipairs(boxes) do list[i] = child(base, plan_of(base, i), opts, sb) end
  return forks.list(list)
end

--- Rollouts that go on from a turn of a stored one, each in a sandbox of its own: `from` of the options says which.
---@async
---@param opts agentbox.RolloutOpts
---@param n integer
---@return agentbox.Forks? forks   # a list; closing it closes them
---@return agentbox.Err? err       # also when that turn cannot be reached again in the same state
function M.forks(opts, n)
  opts = schema.options(opts, plans.OPTIONS, "rollout.forks")
  if not opts.from then error("rollout.forks: the option from is missing", 2) end
  local plan, problem = plans.make(opts)
  if not plan then return nil, problem end
  return restored(opts, n, function(base, i) return forks.plan(base, plan, i) end)
end

--- Starts a rollout that is stepped by hand. Close it, or finish it.
---@async
---@param opts agentbox.RolloutOpts
---@return agentbox.Rollout? rollout
---@return agentbox.Err? err     # the task, the tools, the model's settings: nothing was started
function M.start(opts)
  opts = schema.options(opts, plans.OPTIONS, "rollout")
  local plan, problem = plans.make(opts)
  if not plan then return nil, problem end
  if opts.from then
    local list
    list, problem = restored(opts, 1, function() return plan end)
    return list and list[1], problem
  end
  -- All that is asked for from here on; the plan has the rest.
  opts = { on_end = opts.on_end, checks = opts.checks, metadata = opts.metadata, attempt = opts.attempt, group = opts.group }
  return setmetatable({ plan = plan, opts = opts, rec = new_record(plan, opts), began = time.monotonic() }, Rollout)
end

local function finish(ro, problem)
  local started <close> = ro -- luacheck: ignore
  if not ro then return nil, problem end
  return ro:finish()
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
  opts = schema.options(opts, plans.OPTIONS, "rollout.run")
  return finish(M.start(opts)) -- a tail call: nothing holds the options while the rollout waits
end

return M

--- Runs: many rollouts through one window, in groups, recorded so that nothing is lost and nothing is done twice.
---
---     local run <close> = assert(ab.runner.start { tasks = "tasks", model = model, n = 8, concurrency = 64, out = "runs" })
---     for group in run:groups() do                       -- each as soon as it is closed
---       train(group:trajectories())
---       run:ack(group)                                   -- never delivered again, whatever happens
---     end
---     print(run:wait().solved)
---
--- A rollout that fails fails alone. What the infrastructure spoilt is made again in a fresh sandbox; when most of it
--- fails the run stops and says why. A run that was killed goes on with `resume = true`: only what is missing is run.
local calls = require "agentbox.runner.calls"
local delivery = require "agentbox.runner.delivery"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local flow = require "agentbox.runner.flow"
local groups = require "agentbox.runner.group"
local limits = require "agentbox.limits"
local log = require "agentbox.log"
local member = require "agentbox.runner.member"
local memory = require "agentbox.runner.memory"
local options = require "agentbox.runner.options"
local outcome = require "agentbox.outcome"
local quarantine = require "agentbox.runner.quarantine"
local rand = require "agentbox.sys.rand"
local registry = require "agentbox.runner.registry"
local schema = require "agentbox.schema"
local source = require "agentbox.runner.source"
local store = require "agentbox.store"
local tally = require "agentbox.runner.tally"
local time = require "agentbox.time"
local watch = require "agentbox.runner.watch"

local M = { folder = source.folder }

---@class agentbox.RunnerOpts
---@field tasks string|table|fun(): any   # a folder, a task, a list of tasks or paths, or a function that gives the next one
---@field model? any                # as for rollout.run
---@field models? table<string, any>   # by role: agent, and others that `runner.model` gives to verifiers and tools
---@field n? integer                # rollouts of each task
---@field group_size? integer       # of each group; n unless given
---@field limit? integer            # the first so many tasks
---@field concurrency? integer      # rollouts at once, default 8
---@field limits? { creating?: integer, commands?: integer, judges?: integer }   # of other things at once
---@field out? string               # the folder of the record; without it groups live until they are acknowledged
---@field run_id? string
---@field resume? boolean           # the run is there: only what is missing is run
---@field seed? integer             # each member gets its own, made of this, its place and its attempt
---@field prepare? fun(task: agentbox.Task, slot: { group: string, index: integer, attempt: integer }): table?, any
---@field schedule? fun(groups: table[], stats: table): integer?   # which group goes on; nil: none for now
---@field lookahead? integer        # tasks read before they are wanted, default 4
---@field attempts? integer         # of one member, when the infrastructure fails; default 3
---@field max_errors? number        # unscored rollouts that stop the run: a share below 1 (default 0.5, of 20 or more), or a number
---@field quarantine? integer       # failed attempts in a row, not the model server's, that give a task up; default 4
---@field oversample? integer       # members beyond the group's size
---@field min_group? integer        # scored members below which a group is dropped, default 2
---@field straggler? { factor?: number, min_s?: number, busy_factor?: number }   # busy_factor: of those whose sandbox computes
---@field group_timeout_s? number
---@field run_timeout_s? number
---@field max_lead? integer         # closed groups without acknowledgement, beyond which no group is begun
---@field policy? { version: integer, model?: string }
---@field rank? function|table      # compares a group's members before it is delivered: a function, or the options of verify.ranking
---@field max_staleness? integer    # versions that a rollout may be behind
---@field inflight? "finish"|"restart"   # what becomes of calls in flight when the weights change
---@field total? integer            # rollouts that there will be, if that is known: for those who watch
---@field retry_errors? boolean     # of a resumed run: also what failed in all its attempts is made again
---@field metrics? string|integer|table   # where Prometheus finds its numbers: an address, or { listen =, token = }
---@field on_event? fun(kind: string, fields: table)

---@class agentbox.Run
---@field run_id string
---@field run_dir? string
---@field state "running"|"draining"|"stopping"|"over"
---@field running integer     # rollouts now
---@field peak integer        # the most at once
---@field failure? agentbox.Err   # what broke the run
---@field why? string         # why it ended before its work did
local Run = {}
Run.__index = Run
for name, fn in pairs(delivery.methods) do Run[name] = fn end
for name, fn in pairs(quarantine.methods) do Run[name] = fn end
for name, fn in pairs(watch.methods) do Run[name] = fn end

Run.now = time.monotonic

-- ---------------------------------------------------------------- inside

function Run:_poke()
  self.poked = true
  if self.pump_parked then self.pump:wake() end
  for waiter in pairs(self.waiters) do waiter:wake() end
end

function Run:_event(kind, fields)
  local ok, problem = self.store:event(kind, fields)
  if not ok and not self.ended and self.state ~= "over" then log.warn("%s: %s", self.run_id, problem.msg) end
  if self.opts.on_event then self.opts.on_event(kind, fields) end
end

-- Ends the run as broken: what is in flight is stopped.
function Run:_fail(problem)
  if self.failure or self.state == "over" then return end
  self.failure = err.is(problem) and problem or err.new("defect", tostring(problem))
  self:stop(tostring(self.failure.msg))
end

function Run:_bad_task(problem)
  self.tally.bad_tasks = self.tally.bad_tasks + 1
  self.first_bad = self.first_bad or tostring(problem.msg)
  self:_event("bad_task", { msg = tostring(problem.msg) })
end

-- Whether what an earlier process left of a member is its end.
function Run:_stands(before)
  if before.scored or not before.class or not outcome.INFRA[before.class] then return true end
  return not self.opts.retry_errors and before.attempt + 1 >= self.opts.attempts
end

-- ---------------------------------------------------------------- failures

-- So many that the first of several that were begun together have had the time to end well.
local function streak_limit(self) return math.max(16, math.min(2 * self.opts.concurrency, 64)) end

local function too_many(self)
  local t, max = self.tally, self.opts.max_errors
  local failed = t.unscored - t.evicted
  if max >= 1 and failed > max then return ("%d rollouts are unscored, more than %d"):format(failed, max) end
  if max < 1 and t.rollouts - t.kept >= 20 and failed > max * t.rollouts then
    return ("%d of %d rollouts are unscored, more than %g %%"):format(failed, t.rollouts, max * 100)
  end
  if max < 1 and t.scored == 0 and t:streak() >= streak_limit(self) then
    return ("the first %d attempts all failed"):format(t:streak())
  end
end

local function check_quota(self, result)
  local why = self.state == "running" and too_many(self)
  if not why then return end
  if result.error then why = ("%s; the last one: %s"):format(why, result.error) end
  self:_event("quota", { msg = why })
  self:_fail(err.new("sandbox", "stopped: " .. why, { quota = true }))
end

-- ---------------------------------------------------------------- what members report

function Run:_attempt_ended(one, result, again)
  self.tally:attempt(result, again)
  self:_suspect(one.group.task_id, result)
  if again then
    self:_event("retry", { slot = groups.slot(one), id = result.id, attempt = one.attempt, class = result.class, msg = result.error })
  end
  check_quota(self, result)
end

-- What a member cost that has no place in its group: what is known only after the group was closed.
local function add_waste(self, steps, tokens)
  local waste = self.tally.waste
  waste.steps, waste.tokens = waste.steps + (steps or 0), waste.tokens + (tokens or 0)
end

function Run:_member_ended(one, result)
  if one.state == "ended" then return end
  local group = one.group
  if group.closed then add_waste(self, result.steps, result.tokens) end
  group:note(one, result)
  self.tally:ended(result)
  self:_event("rollout", {
    slot = groups.slot(one), id = result.id, task_id = group.task_id, attempt = one.attempt, status = result.final_status,
    scored = result.scored, reward = result.reward, stop = result.stop, class = result.class, steps = result.steps,
    tokens = result.tokens, duration_s = result.duration_s, msg = result.error, segment = result.segment,
    offset = result.offset,
  })
  check_quota(self, result)
  if self:_gives_up(group) then self:_skip(group) end
  if group:complete() then self:_close_group(group) end
end

-- A member's fiber was ended before the member was.
function Run:_left(one)
  local kind = one.ending and one.ending.kind or "stop"
  if kind == "stop" or self.state == "stopping" then return end
  self.left[one] = true
end

-- Does what is left to do for a member that was stopped. Runs in a fiber of its own, since recording waits.
function Run:_settle(one)
  local ending, traj = one.ending, one.traj
  one.ending, one.traj, one.rollout = nil, nil, nil
  local budget = traj and traj.metrics or {}
  if ending.kind == "surplus" then
    add_waste(self, budget.steps, budget.total_tokens)
    one.state = "ended"
    return
  end
  if ending.kind == "stale" and not one.group.closed then
    self.tally.stale = self.tally.stale + 1
    self:_event("stale", { slot = groups.slot(one), id = one.id, attempt = one.attempt, msg = ending.detail })
    one.state, one.stale = "idle", (one.stale or 0) + 1 -- the same attempt: it is not in the record, and did not fail
    one.group.idle = one.group.idle + 1
    return
  end
  local result
  if traj then
    local problem
    result, problem = member.record(self, traj)
    if not result then return self:_fail(problem) end
  else
    result = { id = one.id, scored = false, final_status = "error", stop = "shutdown", class = "engine", error = ending.detail }
  end
  result.evicted = true
  if ending.kind == "straggler" then
    table.insert(one.group.evicted, { slot = groups.slot(one), seconds = time.monotonic() - one.began, steps = result.steps })
    self:_event("straggler", { slot = groups.slot(one), id = result.id, steps = result.steps, msg = ending.detail })
  end
  self.tally:attempt(result, false)
  self:_member_ended(one, result)
end

function Run:_over()
  if self.feeder then self.feeder:cancel() end
  if self.metrics_server then self.metrics_server:close() end
  self:_event("end", { why = self.why, summary = self:summary() })
  if self.run_dir then
    self.ended = true
    registry.tell(self)
    registry.remove(self)
  end
  self.store:close() -- waits: whoever sees the end may remove the folder
  self.state = "over"
  if self.watcher then self.watcher:wake() end
  self:_poke()
end

-- ---------------------------------------------------------------- what callers do

--- Starts no more rollouts; those that run end as they do. Then the run is over.
---@param why? string
function Run:drain(why)
  if self.state ~= "running" then return end
  self.state, self.why = "draining", why or "drained"
  self:_event("drain", { why = self.why })
  self:_poke()
end

--- Stops the run: what is in flight is ended and not recorded, so that a resumed run makes it again.
---@param why? string
function Run:stop(why)
  if self.state == "stopping" or self.state == "over" then return end
  self.why = why or self.why or "stopped"
  self.state = "stopping"
  for one in self:_each_running() do member.stop(one, "stop", self.why) end
  for _, judging in pairs(self.ranking) do judging:cancel() end
  self:_poke()
end

-- Over all members that have a fiber.
function Run:_each_running()
  local list = {}
  for _, group in ipairs(self.open) do
    for _, one in ipairs(group.members) do
      if one.fiber and one.state ~= "ended" then list[#list + 1] = one end
    end
  end
  for group in pairs(self.closing) do
    for _, one in ipairs(group.members) do
      if one.fiber and one.state ~= "ended" then list[#list + 1] = one end
    end
  end
  local at = 0
  return function()
    at = at + 1
    return list[at]
  end
end

--- Begins no rollouts and makes no model calls until `resume`, as for a server that loads weights.
function Run:pause()
  self.paused = true
  self.models.agent:pause()
  self:_event("pause", {})
end

--- Goes on after `pause`.
function Run:resume()
  self.paused = false
  self.models.agent:resume()
  self:_event("resume", {})
  self:_poke()
end

--- Announces new weights. A call that is sent from now on is recorded with this version, and with that name of the model
--- if one is given. Rollouts that become older than `max_staleness` are ended and made again.
---@param policy { version: integer, model?: string }
function Run:policy(policy)
  policy = schema.options(policy, options.POLICY, "run:policy")
  local agent = self.models.agent
  if agent.version and policy.version < agent.version then
    error(("run:policy: version %d is older than %d"):format(policy.version, agent.version), 2)
  end
  agent:announce(policy, self.opts.inflight == "restart")
  self:_event("policy", { version = policy.version, model = policy.model })
  local max = self.opts.max_staleness
  if not max then return end
  for one in self:_each_running() do
    if one.version and policy.version - one.version > max then
      member.stop(one, "stale", ("stale: begun with version %d, now it is %d"):format(one.version, policy.version))
    end
  end
end

--- Ends one rollout, unscored; its id is in the record and in events.
---@param id string
---@return boolean found
function Run:abort(id)
  local one = self.by_id[id]
  if not one then return false end
  member.stop(one, "user", "aborted")
  return true
end

--- Waits until the run is over.
---@async
---@return agentbox.RunSummary
function Run:wait()
  while self.state ~= "over" do self:_await() end
  return self:summary()
end

-- Until something happens.
function Run:_await(timeout_s)
  local me <close> = setmetatable({ fiber = fiber.current() }, { __close = function(one) self.waiters[one.fiber] = nil end })
  self.waiters[me.fiber] = true
  fiber.park(timeout_s)
end

--- Stops the run if it is not over, and waits.
---@async
function Run:close()
  if self.state ~= "over" then self:stop "closed" end
  self:wait()
end
Run.__close = Run.close

-- ---------------------------------------------------------------- starting

local function open_store(opts, run_id)
  if not opts.out then return memory.new() end
  return store.open(opts.out, {
    run_id = run_id, resume = opts.resume == true, agentbox_json = opts.agentbox_json, full_wait_s = opts.full_wait_s,
    meta = opts.meta,
  })
end

local function wrap_models(self)
  local out = {}
  for role, model in pairs(self.opts.models) do
    out[role] = calls.new(model, {
      policy = role == "agent" and self.opts.policy or nil, restart = role == "agent" and self.opts.inflight == "restart",
      on_call = function(session, version)
        local one = version and self.by_id[session]
        if one then one.version = math.min(one.version or version, version) end
      end,
    })
  end
  return out
end

local function rollout_options(opts)
  local out = {}
  for name in pairs(options.ROLLOUT) do out[name] = opts[name] end
  return out
end

--- Starts a run and returns at once; it goes on in fibers of its own until it is closed or over.
---
--- Raises on unknown options. Returns nil, err when the tasks or the model are wrong or the folder cannot be written.
---@async
---@param given agentbox.RunnerOpts
---@return agentbox.Run? run
---@return agentbox.Err? err
function M.start(given)
  local opts, problem = options.check(given)
  if not opts then return nil, problem end
  local tasks
  tasks, problem = source.new(opts.tasks, { size = opts.size, per_task = opts.per_task, limit = opts.limit })
  if not tasks then return nil, problem end
  local run_id = opts.run_id or rand.uuid4()
  local kept
  kept, problem = open_store(opts, run_id)
  if not kept then return nil, problem end
  local self = setmetatable({
    opts = opts, run_id = run_id, run_dir = kept.run_dir, store = kept, source = tasks, tally = tally.new(),
    limits = limits.new(opts.limits), rollout = rollout_options(opts), state = "running", running = 0, peak = 0,
    ahead = {}, open = {}, closing = {}, left = {}, settling = {}, ranking = {}, waiters = {}, by_id = {}, quarantine = {},
    deadline = opts.run_timeout_s and time.monotonic() + opts.run_timeout_s,
  }, Run)
  self.models = wrap_models(self)
  self:_recall()
  if opts.metrics then
    self.metrics_server, problem = require "agentbox.runner.metrics".serve(self, opts.metrics)
    if not self.metrics_server then
      kept:close()
      return nil, problem
    end
  end
  if self.run_dir then registry.add(self) end
  self:_event("start", { pid = require "agentbox.sys.os".pid(), resumed = opts.resume == true })
  self.pump = fiber.spawn(flow.run, self)
  return self
end

--- The model of a role of the run that this fiber belongs to: for a verifier or a tool that asks one.
---@param role string
---@return agentbox.Model? model
---@return agentbox.Err? err   # code `config` when there is none
function M.model(role)
  local models = fiber.current():locals().models
  if models and models[role] then return models[role] end
  return nil, err.new("config", ("no model has the role '%s' here: give it as models.%s, in agentbox.yaml or to ab.runner.start"):format(role, role))
end

return M

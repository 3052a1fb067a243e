--- rollout/fork.lua: rollouts that go on from a turn of another one.
---
--- A fork begins with the files, the messages and what is left of the budgets of its parent, paused at the top of a turn.
--- Its agent and its tools are started anew: what they keep in Lua is not copied, and running processes are not. In its
--- record the messages so far are its prompt, which is not trained on; they are the parent's, which it names.
---
--- A turn of a stored trajectory is reached by playing it again: the recorded replies are given, the calls in them are run
--- in a fresh sandbox, and each request must be the recorded one, message by message. So a record needs no copies of the
--- files, and a turn that cannot be reached again in the same state is refused instead of forked in another one.
local budget = require "agentbox.budget"
local err = require "agentbox.err"
local json = require "agentbox.json"
local time = require "agentbox.time"
local tool_set = require "agentbox.tool.set"

local M = {}

local function copy(of)
  local out = {}
  for key, value in pairs(of or {}) do out[key] = value end
  return out
end

--- A plan, the parent's own or another one, for the fork with that number.
---@param parent agentbox.Rollout
---@param of agentbox.Plan
---@param index integer
---@param model? agentbox.Model
---@return agentbox.Plan
function M.plan(parent, of, index, model)
  local plan = copy(of)
  plan.id = ("%s.%d-%d"):format(parent.plan.id, parent.ctx.budget.turns, index)
  plan.tools, plan.owns_model = tool_set.new(plan.tools.tools), nil
  plan.model = model or plan.model
  if plan.seed then plan.seed = plan.seed + index end
  local seed = plan.sampling and plan.sampling.seed
  if math.type(seed) == "integer" then
    plan.sampling = copy(plan.sampling)
    plan.sampling.seed = seed + index
  end
  return plan
end

--- What the fork's options are beside its plan.
---@param parent agentbox.Rollout
---@param opts agentbox.RolloutOpts
---@return agentbox.RolloutOpts
function M.options(parent, opts)
  opts = copy(opts)
  opts.metadata, opts.on_end, opts.from = copy(opts.metadata), nil, nil
  opts.metadata.parent = { run_id = parent.plan.run_id, id = parent.plan.id, turn = parent.ctx.budget.turns }
  return opts
end

--- The messages so far, as the prompt of one who goes on from them.
---@param parent agentbox.Rollout
---@return agentbox.Message[]
function M.prompt(parent)
  return table.move(parent.ctx.messages, 1, #parent.ctx.messages, 1, json.array {})
end

--- What is left of the parent's budget, within the limits of the fork's plan.
---@param parent agentbox.Rollout
---@param plan agentbox.Plan
---@return agentbox.Budget
function M.budget(parent, plan)
  local own, was = budget.new(plan.limits), parent.ctx.budget
  own.turns, own.model_calls, own.tokens, own.tokens_known = was.turns, was.model_calls, was.tokens, was.tokens_known
  own.deadline = math.min(own.deadline, time.monotonic() + was:left_s())
  return own
end

---@class agentbox.Forks   # a list of rollouts; closing it closes them
local Forks = {}
Forks.__index = Forks

function Forks:__close()
  for _, ro in ipairs(self) do
    local closed <close> = ro -- luacheck: ignore
  end
end

local Adopted = { __close = function() end }

function Adopted.__index(_, key)
  if key ~= "traj" then error("rollout: it was adopted", 2) end
end

--- What is left of a fork that its parent has become: its trajectory, if it has one.
---@param ro agentbox.Rollout
function M.give_up(ro)
  for key in pairs(ro) do
    if key ~= "traj" then ro[key] = nil end
  end
  setmetatable(ro, Adopted)
end

--- The fork for which fn(trajectory) is largest; those that have not ended, and those for which it is nil, are skipped.
---@param fn fun(traj: agentbox.Traj): number?
---@return agentbox.Rollout?
function Forks:best(fn)
  local best, most
  for _, ro in ipairs(self) do
    local value = ro.traj and fn(ro.traj)
    if value and (not most or value > most) then best, most = ro, value end
  end
  return best
end

---@param list agentbox.Rollout[]
---@return agentbox.Forks
function M.list(list) return setmetatable(list, Forks) end

--- Why the parent cannot be forked now, or nil.
---@param parent agentbox.Rollout
---@return agentbox.Err?
function M.refusal(parent)
  if parent.traj or parent.stop then
    local stop = parent.stop or {}
    return err.new("badarg", ("rollout: it has ended (%s): there is no turn to go on from"):format(stop.reason or "closed"))
  end
  if not parent.sandbox.fork then
    return err.new("unsupported", ("backend %s cannot fork a sandbox"):format(parent.sandbox.kind))
  end
end

--- The options of the rollout that plays a stored one again.
---@async
---@param opts agentbox.RolloutOpts
---@return agentbox.RolloutOpts?
---@return agentbox.Err?
function M.replay(opts)
  local stored, problem = opts.from.traj, nil
  if type(stored) == "string" then stored, problem = require("agentbox.traj").load(stored) end
  if not stored then return nil, problem end
  local base = copy(opts)
  base.from, base.on_end, base.run_id, base.id = nil, nil, stored.run_id, stored.id
  base.model, problem = require("agentbox.models.replay").new { traj = stored }
  if not base.model then return nil, problem end
  return base
end

--- What it means that the replay ended before its turn.
---@param base agentbox.Rollout
---@param turn integer
---@return agentbox.Err
function M.not_reached(base, turn)
  local stop = base.stop
  local detail = tostring(stop.detail or stop.reason)
  return err.new(stop.class == "sandbox" and "sandbox" or "badarg",
    ("turn %d was not reached again: after turn %d: %s"):format(turn, base.ctx and base.ctx.budget.turns or 0, detail))
end

return M

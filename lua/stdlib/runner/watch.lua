--- What those who watch a run see of it: its numbers at any time, and what takes so long.
local busy = require "agentbox.runner.busy"
local groups = require "agentbox.runner.group"
local time = require "agentbox.time"

local M = { methods = {} }

---@class agentbox.RunSummary
---@field run_id string
---@field run_dir? string
---@field why? string          # why it ended before its work did
---@field failure? string      # what broke it
---@field rollouts integer
---@field attempts integer
---@field solved integer
---@field scored integer
---@field unscored integer
---@field kept integer         # of them by earlier processes of the run
---@field by_status table<string, integer>
---@field by_class table<string, integer>   # of the unscored ones
---@field groups table         # closed, whole, partial, dropped, zero_signal
---@field waste table          # of surplus members: rollouts, steps, tokens, seconds
---@field peaks table          # of each limit

---@class agentbox.Run
local Run = M.methods

-- The roles whose calls all wait for another try, and why.
local function stuck(self)
  local list = {}
  for role, calls in pairs(self.models) do
    local running, waiting, why = calls.gate.running, calls:waiting(), calls:trouble()
    if why and running > 0 and waiting >= running then list[#list + 1] = { role = role, msg = why, waiting = waiting } end
  end
  table.sort(list, function(a, b) return a.role < b.role end)
  return list
end

--- What is going on now: for a view, or a scheduling policy.
---@return table
function Run:stats()
  local agent = self.models.agent
  return {
    state = self.ended and "over" or self.state, paused = self.paused == true, running = self.running,
    open_groups = #self.open, position = self.source.position,
    calls = agent.gate.running, waiting_calls = agent:waiting(), stuck = stuck(self),
    full_s = self.store.full_since and time.now() - self.store.full_since or nil, version = agent.version,
    rate = self.tally:rate(), numbers = self.tally:numbers(),
    prompt_tokens = agent.prompt_tokens, completion_tokens = agent.completion_tokens,
  }
end

local function doing(one)
  if one.state == "waiting" then return ("waits for attempt %d"):format(one.attempt + 1) end
  if one.state == "storing" then return "is being saved" end
  local ro = one.rollout
  if not ro or not ro.ctx then return "sandbox and set-up" end
  if ro.stop then return "verifier" end
  return ("turn %d: %s"):format(ro.ctx.budget.turns + 1, ro.ctx.doing or "Lua")
end

--- The rollouts that have run for the longest time, what each waits for, and the CPU time that its sandbox has used.
---@param n integer
---@return { id: string, seconds: number, doing: string, cpu_s?: number }[]
function Run:slowest(n)
  local now, list = time.monotonic(), {}
  for one in self:_each_running() do
    if one.began then list[#list + 1] = { id = groups.slot(one), seconds = now - one.began, one = one } end
  end
  table.sort(list, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.id < b.id
  end)
  list = table.move(list, 1, math.min(n, #list), 1, {})
  for _, row in ipairs(list) do
    row.doing, row.cpu_s, row.one = doing(row.one), busy.cpu_s(row.one), nil
  end
  return list
end

--- The run in numbers, at any time.
---@return agentbox.RunSummary
function Run:summary()
  local out = self.tally:numbers()
  out.run_id, out.run_dir, out.why = self.run_id, self.run_dir, self.why
  out.failure = self.failure and tostring(self.failure.msg) or nil
  out.reward_mean = out.scored > 0 and out.reward_sum / out.scored or nil
  local agent = self.models.agent
  out.model_calls, out.restarted_calls, out.repeated_tries = agent.gate.entered, agent.restarts, agent.repeats
  out.prompt_tokens, out.completion_tokens = agent.prompt_tokens, agent.completion_tokens
  out.peaks = self.limits:peaks()
  out.peaks.rollouts = { peak = self.peak, max = self.opts.concurrency }
  out.peaks.model_calls = { peak = agent.gate.peak }
  out.places = agent:places()
  out.bad_task = self.first_bad
  return out
end

return M

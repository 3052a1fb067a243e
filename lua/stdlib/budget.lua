--- budget.lua: what a rollout may still spend: turns, model calls, tokens, time.
---
--- Limits are checked before each model call and counted at the response, before anything in it is parsed, so that a
--- reply nobody can use is paid for like any other. A limit of nil is no limit; 0 is a limit of nothing.
local time = require "agentbox.time"

local M = {}

local monotonic = time.monotonic

--- Less than this is no time: nothing can be asked in it, and a timer may end what filled the episode a moment early.
local LEAST_S = 0.01

---@class agentbox.Budget
---@field max_turns? integer         # turns that used tools
---@field max_model_calls? integer
---@field max_tokens? integer        # prompt and completion of all calls
---@field step_timeout_s number      # one model call; one turn's tool calls
---@field total_s number             # the whole episode
---@field deadline number            # monotonic seconds
---@field turns integer
---@field model_calls integer
---@field tokens integer
---@field tokens_known boolean       # false once a server did not say
---@field on_move? fun(deadline: number?)   # the deadline is another one; nil while the clock stands still
---@field model_s number            # waited for the model
---@field tool_s number             # and for tools
local Budget = { turns = 0, model_calls = 0, tokens = 0, tokens_known = true, model_s = 0, tool_s = 0 } -- nothing is spent
Budget.__index = Budget

---@param opts { max_turns?: integer, max_model_calls?: integer, max_tokens?: integer, episode_timeout_s: number, step_timeout_s: number }
---@return agentbox.Budget
function M.new(opts)
  return setmetatable({
    max_turns = opts.max_turns, max_model_calls = opts.max_model_calls, max_tokens = opts.max_tokens,
    step_timeout_s = opts.step_timeout_s, total_s = opts.episode_timeout_s,
    deadline = time.monotonic() + opts.episode_timeout_s,
  }, Budget)
end

--- The stop reason of the first limit that is reached, or nil.
---@return string?
function Budget:over()
  if self.deadline - monotonic() < LEAST_S then return "wall_timeout" end
  if self.max_turns and self.turns >= self.max_turns then return "max_turns" end
  if self.max_model_calls and self.model_calls >= self.max_model_calls then return "max_turns" end
  if self.max_tokens and self.tokens >= self.max_tokens then return "token_budget" end
end

--- Seconds until the episode's end, never negative.
---@param now? number   # monotonic seconds, for who has just looked
---@return number
function Budget:left_s(now)
  local left_s = self.deadline - (now or monotonic())
  return left_s > 0 and left_s or 0
end

--- Seconds for the next step: its own limit, or what is left of the episode.
---@param now? number
---@return number
function Budget:step_s(now)
  local left_s, step_s = self:left_s(now), self.step_timeout_s
  return left_s < step_s and left_s or step_s
end

--- The clock stands still until `go`: what is waited for is not the rollout's doing (a queue of the run, a server that is
--- down). May be nested.
function Budget:hold()
  self._holds = (self._holds or 0) + 1
  if self._holds > 1 then return end
  self._held_at = monotonic()
  if self.on_move then self.on_move(nil) end
end

--- The clock goes on; the deadline is as much later.
function Budget:go()
  self._holds = self._holds - 1
  if self._holds > 0 then return end
  self.deadline = self.deadline + monotonic() - self._held_at
  if self.on_move then self.on_move(self.deadline) end
end

--- Counts a model's reply. A server that reports no usage is charged a token for every four bytes of the answer.
---@param usage? { prompt?: integer, completion?: integer, total?: integer }
---@param message table
function Budget:spend(usage, message)
  self.model_calls = self.model_calls + 1
  if usage and (usage.total or usage.completion) then
    self.tokens = self.tokens + (usage.total or (usage.prompt or 0) + usage.completion)
    return
  end
  self.tokens_known = false
  local content = type(message.content) == "string" and message.content or ""
  self.tokens = self.tokens + #content // 4 + 1
end

function Budget:end_turn() self.turns = self.turns + 1 end

return M

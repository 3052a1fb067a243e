--- The invariants of a record that need nothing but the record. A violation is a bug of the engine.
---
--- The recorder feeds a checker as things happen; `check` feeds one with a line that was read back. Rules have the
--- numbers of docs/trajectories.md: 1 planes, 4 numbers of calls, 5 nodes and calls, 6 tool messages, 8 reward, 9 use,
--- 10 numbers and times, 11 versions.
local json = require "agentbox.json"
local tokens = require "agentbox.record.tokens"

local M = {}

---@class agentbox.Violation
---@field rule integer
---@field where string
---@field msg string

--- It has nothing until there is something: thousands of rollouts wait for their first answer.
---@class agentbox.RecordChecker
---@field private found? agentbox.Violation[]
---@field private ids? table<string, table<string, integer>>   # model → response id → call
---@field private failed? table<integer, boolean>              # calls
---@field private unused? table<integer, boolean>              # calls of the agent of which no message came
---@field private calls integer
---@field private asked? table<integer, table|integer>         # assistant node → its calls; tool node → the assistant's
---@field private answered? table<integer, integer>            # assistant node → how many, until it is all of them
local Checker = { calls = 0 }
Checker.__index = Checker

---@return agentbox.RecordChecker
function M.new() return setmetatable({}, Checker) end

local function begin(self)
  self.ids, self.unused, self.asked, self.answered = {}, {}, {}, {}
end

local math_type = math.type
local NO_CALLS = {}

local function value_of(field)
  if field == json.null then return nil end
  return field
end

local function add(self, rule, what, index, msg)
  local where = index and ("%s[%d]"):format(what, index) or what
  self.found = self.found or {}
  table.insert(self.found, { rule = rule, where = where, msg = msg })
end

--- A call, in the order of their numbers. A server may give one id to several answers; that is no fault of the record,
--- whose own name for a call is its number.
---@param index integer        # from 0
---@param purpose string
---@param failed boolean
---@param id? string           # the server's
---@param model? string
---@return integer? earlier    # the call that got the same id
function Checker:call(index, purpose, failed, id, model)
  if index ~= self.calls then add(self, 4, "calls", self.calls, ("has the number %s"):format(index)) end
  if not self.asked then begin(self) end
  self.calls = self.calls + 1
  if failed then
    self.failed = self.failed or {}
    self.failed[index] = true
  elseif purpose == "agent" then
    self.unused[index] = true
  end
  if not id then return nil end
  local seen = self.ids[model or ""]
  if not seen then
    seen = {}
    self.ids[model or ""] = seen
  end
  local earlier = seen[id]
  seen[id] = earlier or index
  return earlier
end

--- The token planes and the versions of a call.
---@param index integer
---@param call { tokens?: table, versions?: table[] }
---@return string? problem   # with the planes
function Checker:planes(index, call)
  local problem = tokens.problem(call)
  if problem then add(self, 1, "calls", index, problem) end
  local sum, counted = 0, call.tokens and call.tokens.n_out
  for _, segment in ipairs(call.versions or {}) do sum = sum + segment.n end
  if call.versions and counted and sum ~= counted then
    add(self, 11, "calls", index, "the segments do not add up to the output")
  end
  return problem
end

--- Times that must not go backwards.
---@param what string
---@param index integer
---@param a number
---@param b number
---@param c? number
function Checker:times(what, index, a, b, c)
  if b < a or c and c < b then add(self, 10, what, index, "its times go backwards") end
end

-- The tool messages that follow an assistant message answer its calls in their order, each once.
local function answer(self, index, parent, id)
  local asked, owner, calls = self.asked, parent, nil
  if parent then calls = asked[parent] end
  if math_type(calls) then owner, calls = calls, asked[calls] end
  if not calls then return add(self, 6, "nodes", index, "a tool message that follows no assistant message") end
  local n = (self.answered[owner] or 0) + 1
  local call = calls[n]
  asked[index] = owner
  if n < #calls then
    self.answered[owner] = n
  else -- each later one is one too many
    self.answered[owner], asked[owner] = nil, NO_CALLS
  end
  if not call or call.id ~= id then add(self, 6, "nodes", index, ("answers %s out of order"):format(tostring(id))) end
end

--- A node, in the order of their numbers; its call before it.
---@param index integer      # from 0
---@param parent? integer
---@param origin string
---@param call? integer
---@param message agentbox.Message
function Checker:node(index, parent, origin, call, message)
  if parent and (parent < 0 or parent >= index) then add(self, 5, "nodes", index, "its parent comes after it") end
  if origin == "sampled" then
    if not call or call >= self.calls then
      add(self, 5, "nodes", index, "sampled by no call")
    else
      if self.failed and self.failed[call] then add(self, 5, "nodes", index, "sampled by a call that failed") end
      self.unused[call] = nil
    end
  elseif call then
    add(self, 5, "nodes", index, "has a call but was not sampled")
  end
  if message.role == "assistant" then
    if not self.asked then begin(self) end
    self.asked[index] = value_of(message.tool_calls) or NO_CALLS
  elseif origin == "tool" then
    if not self.asked then begin(self) end
    answer(self, index, parent, message.tool_call_id)
  end
end

local function check_reward(self, line)
  local scored, value = line.reward.scored, value_of(line.reward.value)
  if scored ~= (value ~= nil) then add(self, 8, "reward", nil, "scored and value disagree") end
  local class = value_of(line.stop.class)
  if class and class ~= "policy" and scored then
    add(self, 8, "reward", nil, ("a rollout of class %s has a number"):format(class))
  end
  if not scored and line.use.rl then add(self, 9, "use", nil, "an unscored rollout is offered for training") end
end

--- What only the finished line shows.
---@param line table
---@return agentbox.Violation[] violations   # all there are
function Checker:finish(line)
  for index = 0, self.unused and next(self.unused) and self.calls - 1 or -1 do
    if self.unused[index] then add(self, 5, "calls", index, "no message came of it") end
  end
  check_reward(self, line)
  if line.finished < line.started then add(self, 10, "finished", nil, "before started") end
  local low, high = value_of(line.policy.version_min), value_of(line.policy.version_max)
  if low and high and low > high then add(self, 11, "policy", nil, "version_min is above version_max") end
  return self.found or {}
end

local function feed_call(checker, call)
  checker:call(call.i, call.purpose, value_of(call.error) ~= nil, value_of(call.response_id), value_of(call.model))
  checker:planes(call.i, call)
  local t = value_of(call.t)
  for i = 2, #(t or {}) do checker:times("calls", call.i, t[i - 1], t[i]) end
end

--- Checks a line that was read back.
---@param line table
---@return agentbox.Violation[] violations   # empty when all is well
function M.check(line)
  local checker = M.new()
  for _, call in ipairs(line.calls) do feed_call(checker, call) end
  for i, node in ipairs(line.nodes) do
    local message = json.type(node.m) == "raw" and node.m:decode() or node.m
    checker:node(i - 1, value_of(node.p), node.o, node.c, message)
  end
  for i, run in ipairs(line.tool_runs) do
    local t = value_of(run.t)
    if t and #t == 2 then checker:times("tool_runs", i - 1, t[1], t[2]) end
  end
  return checker:finish(line)
end

return M

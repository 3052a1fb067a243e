--- The invariants of a record that need nothing but its own line. A violation is a bug of the engine.
---
--- Rules have the numbers of docs/trajectories.md: 1 planes, 4 response ids, 5 nodes and calls, 6 tool messages,
--- 8 reward, 9 use, 10 numbers and times, 11 versions.
local json = require "agentbox.json"
local tokens = require "agentbox.record.tokens"

local M = {}

---@class agentbox.Violation
---@field rule integer
---@field where string
---@field msg string

local function value_of(field)
  if field == json.null then return nil end
  return field
end

local function message_of(node)
  return json.type(node.m) == "raw" and node.m:decode() or node.m
end

local function check_planes(line, add)
  for _, call in ipairs(line.calls) do
    local problem = tokens.problem(call)
    if problem then add(1, "calls[" .. call.i .. "]", problem) end
  end
end

local function check_response_ids(line, add)
  local seen = {}
  for _, call in ipairs(line.calls) do
    local id = value_of(call.response_id)
    local key = id and (value_of(call.model) or "") .. "\0" .. id
    if key and seen[key] then
      add(4, "calls[" .. call.i .. "]", ("response id %q was used by call %d"):format(id, seen[key]))
    end
    if key then seen[key] = call.i end
  end
end

local function check_nodes(line, add)
  local used = {}
  for i, node in ipairs(line.nodes) do
    local where = "nodes[" .. i - 1 .. "]"
    local parent = value_of(node.p)
    if parent and (parent < 0 or parent >= i - 1) then add(5, where, "its parent comes after it") end
    if node.o == "sampled" then
      local call = node.c and line.calls[node.c + 1]
      if not call then add(5, where, "sampled by no call") end
      if call and value_of(call.error) then add(5, where, "sampled by a call that failed") end
      if node.c then used[node.c] = true end
    elseif node.c then
      add(5, where, "has a call but was not sampled")
    end
  end
  for _, call in ipairs(line.calls) do
    if call.purpose == "agent" and not value_of(call.error) and not used[call.i] then
      add(5, "calls[" .. call.i .. "]", "no message came of it")
    end
  end
end

-- The tool messages that follow an assistant message answer its calls in their order, each once.
local function check_tools(line, add, messages)
  local pending, at = {}, {}
  for i, node in ipairs(line.nodes) do
    local msg = messages and messages[node] or message_of(node)
    if msg.role == "assistant" then
      local ids = {}
      for _, call in ipairs(value_of(msg.tool_calls) or {}) do ids[#ids + 1] = call.id end
      pending[i - 1], at[i - 1] = ids, 0
    elseif node.o == "tool" then
      local owner, id = value_of(node.p), msg.tool_call_id
      while owner and line.nodes[owner + 1].o == "tool" do owner = value_of(line.nodes[owner + 1].p) end
      local ids = owner and pending[owner]
      if not ids then
        add(6, "nodes[" .. i - 1 .. "]", "a tool message that follows no assistant message")
      else
        at[owner] = at[owner] + 1
        if ids[at[owner]] ~= id then
          add(6, "nodes[" .. i - 1 .. "]", ("answers %s out of order"):format(tostring(id)))
        end
      end
    end
  end
end

local function check_reward(line, add)
  local scored, value = line.reward.scored, value_of(line.reward.value)
  if scored ~= (value ~= nil) then add(8, "reward", "scored and value disagree") end
  local class = value_of(line.stop.class)
  if class and class ~= "policy" and scored then
    add(8, "reward", ("a rollout of class %s has a number"):format(class))
  end
  if not scored and line.use.rl then add(9, "use", "an unscored rollout is offered for training") end
end

local function check_times(line, add)
  local function ordered(list, where)
    for i = 2, #list do
      if list[i] < list[i - 1] then return add(10, where, "its times go backwards") end
    end
  end
  for _, call in ipairs(line.calls) do
    if value_of(call.t) then ordered(call.t, "calls[" .. call.i .. "]") end
  end
  for i, run in ipairs(line.tool_runs) do
    if value_of(run.t) then ordered(run.t, "tool_runs[" .. i - 1 .. "]") end
  end
  if line.finished < line.started then add(10, "finished", "before started") end
end

local function check_versions(line, add)
  local low, high = value_of(line.policy.version_min), value_of(line.policy.version_max)
  if low and high and low > high then add(11, "policy", "version_min is above version_max") end
  for _, call in ipairs(line.calls) do
    local sum, counted = 0, call.tokens and call.tokens.n_out
    for _, segment in ipairs(call.versions or {}) do sum = sum + segment.n end
    if call.versions and counted and sum ~= counted then
      add(11, "calls[" .. call.i .. "]", "the segments do not add up to the output")
    end
  end
end

--- Checks a line, just built or read back.
---@param line table
---@param messages? table<table, agentbox.Message>   # of the nodes, when the caller has them decoded
---@return agentbox.Violation[] violations            # empty when all is well
function M.check(line, messages)
  local found = {}
  local function add(rule, where, msg) found[#found + 1] = { rule = rule, where = where, msg = msg } end
  check_planes(line, add)
  check_response_ids(line, add)
  check_nodes(line, add)
  check_tools(line, add, messages)
  check_reward(line, add)
  check_times(line, add)
  check_versions(line, add)
  return found
end

return M

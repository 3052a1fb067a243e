--- Nodes and calls of a record as verifiers' message graph (v1, 0.4): each node with the ids that it adds to its path.
---
--- Which ids a tool's or user's message became is not known, so the whole tail of a prompt goes to the assistant's node
--- that follows it, masked. A path's nodes then give the exact prompt and output again. Where a prompt does not go on from the
--- call before (a drift), its messages stand in the graph once more, as a branch with ids of its own.
local choice = require "agentbox.formats._choice"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"
local traj = require "agentbox.traj"

local M = {}

local function calls_of(message)
  local given = choice.plain(message.tool_calls)
  if not given or #given == 0 then return nil end
  local out = json.array {}
  for i, call in ipairs(given) do
    local item = json.object {}
    item.id, item.type = call.id, "function"
    item.name, item.arguments = call["function"].name, call["function"].arguments
    out[i] = item
  end
  return out
end

--- A message in verifiers' form; nil for a role that it does not know.
---@param message agentbox.Message
---@return table?
function M.message(message)
  local out, role = json.object {}, message.role
  if role == "developer" then role = "system" end
  if role ~= "system" and role ~= "user" and role ~= "assistant" and role ~= "tool" then return nil end
  out.role = role
  if role == "assistant" then
    out.content = choice.plain(message.content) and traj.text(message) or json.null
    out.reasoning_content = choice.plain(message.reasoning_content) or choice.plain(message.reasoning)
    out.tool_calls = calls_of(message)
  else
    out.content = traj.text(message)
    if role == "tool" then out.tool_call_id = message.tool_call_id or "" end
  end
  return out
end

-- The graph while it is made: `current` is where each node of the record stands in the newest branch, `ends` the call whose
-- prompt and output a path's ids are up to a node.
local function new_graph(t, lost)
  return { t = t, lost = lost, nodes = json.array {}, current = {}, place = {}, ends = {}, memo = {} }
end

local function emit(graph, node, parent, call)
  local item = json.object {}
  item.parent = parent and parent - 1 or json.null
  item.message = M.message(choice.message(node))
  if not item.message then return nil, "a message of a role that verifiers does not know" end
  item.sampled = call and true or false
  item.timestamp = call and call.t and call.t[#call.t] or graph.t.line.started
  graph.nodes[#graph.nodes + 1] = item
  return item
end

-- The call that the ids of a path end with; nil when none of its nodes has any.
local function end_of(graph, at)
  while at do
    if graph.ends[at] then return graph.ends[at] end
    local parent = choice.plain(graph.nodes[at].parent)
    at = parent and parent + 1
  end
end

-- The path to a node once more, for a call whose prompt is another one than its messages' ids so far: no ids, nothing sampled.
local function branch(graph, index)
  local path, parent = {}, nil
  local at = index
  while at do
    path[#path + 1] = at
    at = choice.plain(graph.t.line.nodes[at + 1].p)
  end
  for i = #path, 1, -1 do
    local ok, reason = emit(graph, graph.t.line.nodes[path[i] + 1], parent)
    if not ok then return nil, reason end
    parent = #graph.nodes
    graph.current[path[i]] = parent
  end
  return parent
end

local function put_planes(item, call, before, given)
  local ids, mask = json.array(table.move(before, 1, #before, 1, {})), json.array {}
  table.move(given, 1, #given, #ids + 1, ids)
  for i = 1, #ids do mask[i] = i > #before and call.trainable end
  item.token_ids = ids
  item.mask = mask
  item.logprobs = call.trainable and call.tokens.lp or sys.trusted "[]"
end

-- A sampled node: its ids are the new ones of its prompt, masked, and its output. A prompt that does not go on with exactly what
-- the path's ids are begins a branch of its own, with all of them.
local function sampled(graph, node, call)
  local parent = choice.plain(node.p)
  local at = parent and graph.current[parent]
  if not tokens.is_rl_grade(call) then
    graph.lost(choice.NO_TOKENS)
    return emit(graph, node, at, call)
  end
  local last, packed = end_of(graph, at), call.tokens.prompt
  if json.type(packed) == "raw" then packed = packed:decode() end
  local goes_on = last and call.tokens.drift == "clean" and json.is_object(packed) and packed.base == last
  if last and not goes_on then
    local reason
    at, reason = branch(graph, parent)
    if not at then return nil, reason end
  end
  local planes = tokens.unpack(graph.t.line.calls, call, graph.memo)
  local before = goes_on and packed.tail or planes.prompt
  local item, reason = emit(graph, node, at, call)
  if not item then return nil, reason end
  put_planes(item, call, before, planes.out)
  graph.ends[#graph.nodes] = call.i
  return item
end

--- The nodes, and where each call's message stands among them (from 0); nil and why when a message cannot be said.
---@param t agentbox.Traj
---@param lost fun(what: string)
---@return table[]? nodes
---@return table<integer, integer>|string place_or_reason
function M.nodes(t, lost)
  local graph = new_graph(t, lost)
  for i, node in ipairs(t.line.nodes) do
    local call, parent = node.o == "sampled" and choice.call(t, node), choice.plain(node.p)
    local item, reason
    if call then
      item, reason = sampled(graph, node, call)
    else
      item, reason = emit(graph, node, parent and graph.current[parent])
    end
    if not item then return nil, reason end
    graph.current[i - 1] = #graph.nodes
    if call then graph.place[i - 1] = #graph.nodes - 1 end
  end
  return graph.nodes, graph.place
end

local FINISH = { stop = true, length = true, tool_calls = true }

local function usage_of(usage)
  usage = choice.plain(usage)
  if not usage or not usage.prompt then return nil end
  local out = json.object {}
  out.prompt_tokens, out.completion_tokens = usage.prompt, usage.completion or 0
  return out
end

local function span(times)
  local out = json.object {}
  if times and times ~= json.null and #times > 0 then out.start, out["end"] = times[1] + 0.0, times[#times] + 0.0 end
  return out
end

--- The calls, failed ones too.
---@param t agentbox.Traj
---@param place table<integer, integer>   # of their messages
---@return table[]
function M.calls(t, place)
  local out = json.array {}
  for i, call in ipairs(t.line.calls) do
    local item, problem = json.object {}, choice.plain(call.error)
    item.node = choice.plain(call.out) and place[call.out]
    item.model = choice.plain(call.model) or choice.plain(t.line.policy.model)
    item.endpoint = "/chat/completions"
    item.finish_reason = call.finish and FINISH[call.finish.norm] and call.finish.norm or nil
    item.usage = usage_of(call.usage)
    item.time = span(call.t)
    if problem then
      item.error = json.object { type = "agentbox.model_server", message = type(problem) == "string" and problem or json.encode(problem) }
    end
    out[i] = item
  end
  return out
end

return M

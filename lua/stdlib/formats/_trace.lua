--- Nodes and calls of a record as verifiers' message graph (v1, 0.4): each node with the ids that it adds to its path.
---
--- Which ids a tool's or user's message became is not known, so the whole tail of a prompt goes to the assistant's node
--- that follows it, masked. A path's nodes then give the exact prompt and output again. Where a prompt does not go on from the
--- call before (a drift), its messages stand in the graph once more, as a branch with ids of its own.
local chat = require "agentbox.formats._chat"
local choice = require "agentbox.formats._choice"
local json = require "agentbox.json"
local lists = require "agentbox.sys.list"
local plane = require "agentbox.sys.plane"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"

local M = {}

local put_nodes = sys.rows({
  "parent", { "message", { "role", "content", "reasoning_content", "tool_calls", "tool_call_id" } }, "sampled", "timestamp",
  "token_ids", "mask", "logprobs",
}, { content = true, tool_calls = true, tool_call_id = true, timestamp = true, token_ids = true, mask = true, logprobs = true })
local tool_calls_of = sys.recast({ "id", { "type", '"function"' }, "name", "arguments" },
  { "&id", "&function.name", "&function.arguments" })

local ROLES = { assistant = "assistant", system = "system", developer = "system", user = "user", tool = "tool" }

-- What verifiers' messages say in other words than those of the record, by the places of their nodes.
local function contents_of(nodes)
  local role, kind, out = nodes.role, nodes.kind, {}
  for at = 1, nodes.n do
    local said = kind[at]
    if role[at] == "assistant" and (not said or said == "null") then out[at] = "null"
    elseif said ~= "string" then out[at] = chat.text(nodes.content[at]) end
  end
  return out
end

-- The last time of a list of them, as JSON text.
local function last_of(times) return times:match "^.*[,%[]([^,%[%]]+)%]$" end

-- The graph while it is made: columns of its nodes; `at` is the node of the record (from 1), `current` where each of those stands
-- in the newest branch, `ends` the call whose prompt and output a path's ids are up to a node.
local function new_graph(t, lost)
  local n = t.columns.n
  local current, parent, at, sampled, stamp = lists.new(5, n)
  return {
    t = t, lost = lost, n = 0, current = current, place = {}, ends = {}, memo = {}, evidence = choice.evidence(t),
    started = json.encode(t.line.started),
    parent = parent, at = at, sampled = sampled, stamp = stamp, ids = {}, mask = {}, lp = {},
  }
end

local function emit(graph, at, parent, call)
  if not ROLES[graph.t.columns.role[at]] then return nil, "a message of a role that verifiers does not know" end
  local n, times = graph.n + 1, call and graph.t.call_columns.t[call]
  graph.n, graph.parent[n], graph.at[n] = n, parent and parent - 1 or json.null, at
  graph.sampled[n], graph.stamp[n] = call ~= nil, times and last_of(times) or graph.started
  return n
end

-- The list of the graph's nodes.
local function list_of(graph)
  local nodes = graph.t.columns
  local roles, thoughts, reasonings, ids = nodes.role, nodes.thought, nodes.reasoning, nodes.id
  local all_calls = tool_calls_of(sys.cells(nodes, "calls"))
  local role, thought, calls, id = lists.new(4, graph.n)
  for n, at in ipairs(graph.at) do
    role[n] = ROLES[roles[at]]
    if role[n] == "assistant" then
      thought[n], calls[n] = thoughts[at] or reasonings[at], all_calls[at]
    elseif role[n] == "tool" then
      id[n] = ids[at] or '""'
    end
  end
  local content = sys.cells(nodes, "content", contents_of(nodes), graph.at)
  return sys.later(put_nodes, 1, graph.n, graph.parent, role, content, thought, calls, id, graph.sampled, graph.stamp, graph.ids,
    graph.mask, graph.lp)
end

-- The call that the ids of a path end with; nil when none of its nodes has any.
local function end_of(graph, at)
  while at do
    if graph.ends[at] then return graph.ends[at] end
    local parent = graph.parent[at]
    at = parent ~= json.null and parent + 1 or nil
  end
end

-- The path to a node once more, for a call whose prompt is another one than its messages' ids so far: no ids, nothing sampled.
local function branch(graph, index)
  local path, parent, p = {}, nil, graph.t.columns.p
  local at = index
  while at do
    path[#path + 1] = at
    at = p[at] and p[at] + 1
  end
  for i = #path, 1, -1 do
    local reason
    parent, reason = emit(graph, path[i], parent)
    if not parent then return nil, reason end
    graph.current[path[i]] = parent
  end
  return parent
end

local function put_planes(graph, n, call, before, n_before)
  local given, trainable = call.tokens, call.trainable == true
  local out = tokens.text(given.out):sub(2, -2)
  graph.ids[n] = before == "" and ("[%s]"):format(out) or ("[%s,%s]"):format(before, out)
  graph.mask[n] = "[" .. (("false,"):rep(n_before) .. ("%s,"):format(trainable):rep(given.n_out)):sub(1, -2) .. "]"
  graph.lp[n] = trainable and tokens.text(given.lp) or "[]"
end

-- A sampled node: its ids are the new ones of its prompt, masked, and its output. A prompt that does not go on with exactly what
-- the path's ids are begins a branch of its own, with all of them.
local function sampled(graph, index, number)
  local parent = graph.t.columns.p[index]
  local at, call = parent and graph.current[parent + 1], graph.evidence[number]
  if not tokens.is_rl_grade(call) then
    graph.lost(choice.NO_TOKENS)
    return emit(graph, index, at, number)
  end
  local last, given = end_of(graph, at), call.tokens
  local goes_on = last and given.drift == "clean" and given.keep and given.base == last
  if last and not goes_on then
    local reason
    at, reason = branch(graph, parent + 1)
    if not at then return nil, reason end
  end
  local n, reason = emit(graph, index, at, number)
  if not n then return nil, reason end
  if goes_on then
    put_planes(graph, n, call, tokens.text(given.tail):sub(2, -2), plane.count(given.tail) or 0)
  else
    put_planes(graph, n, call, tokens.prompt_text(graph.evidence, call, graph.memo))
  end
  graph.ends[n] = call.i
  return n
end

--- The nodes as JSON text, and where each call's message stands among them (from 0); nil and why when a message cannot be said.
---@param t agentbox.Traj
---@param lost fun(what: string)
---@return agentbox.JsonRaw? nodes
---@return table<integer, integer>|string place_or_reason
function M.nodes(t, lost)
  local graph, nodes, n_calls = new_graph(t, lost), t.columns, t.call_columns.n
  for i = 1, nodes.n do
    local call, parent = nodes.o[i] == "sampled" and nodes.c[i], nodes.p[i]
    if call and call >= n_calls then call = nil end
    local at, reason
    if call then
      at, reason = sampled(graph, i, call + 1)
    else
      at, reason = emit(graph, i, parent and graph.current[parent + 1])
    end
    if not at then return nil, reason end
    graph.current[i] = at
    if call then graph.place[i - 1] = at - 1 end
  end
  return list_of(graph), graph.place
end

local FINISH = { stop = true, length = true, tool_calls = true }

local used = sys.pick { "prompt", "completion" }
local put_usage = sys.row { "prompt_tokens", "completion_tokens" }
local put_span = sys.row { "start", "end" }
local put_model_calls = sys.rows({ "node", "model", "endpoint", "finish_reason", "usage", "time", "error" },
  { usage = true, time = true, error = true })

local function usage_of(text)
  local prompt, completion = used(text)
  return prompt and put_usage(prompt, completion or 0) or nil
end

local function span(text)
  local first, last = text:match "^%[([^,%]]+)", last_of(text)
  return first and put_span(tonumber(first) + 0.0, tonumber(last) + 0.0) or "{}"
end

local function error_of(text)
  local message = text:byte() == 34 and json.decode(text) or text
  return json.encode(json.object { type = "agentbox.model_server", message = message })
end

--- The calls as JSON text, failed ones too.
---@param t agentbox.Traj
---@param place table<integer, integer>   # of their messages
---@return agentbox.JsonRaw
function M.calls(t, place)
  local calls, policy = t.call_columns, choice.plain(t.line.policy.model)
  local node, model, finish, usage, time, problem = lists.new(6, calls.n)
  for i = 1, calls.n do
    local norm = calls.norm[i]
    node[i], model[i] = calls.out[i] and place[calls.out[i]], calls.model[i] or policy
    finish[i] = norm and FINISH[norm] and norm or nil
    usage[i], time[i] = calls.usage[i] and usage_of(calls.usage[i]), span(calls.t[i] or "[]")
    problem[i] = calls.error[i] and error_of(calls.error[i])
  end
  return sys.later(put_model_calls, 1, calls.n, node, model, "/chat/completions", finish, usage, time, problem)
end

return M

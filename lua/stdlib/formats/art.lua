--- ART's trajectories (openpipe-art 0.5.23; both forms also load in the releases since 0.4 that have them).
---
--- `form = "messages"`: `messages_and_choices`, where a `Choice` (here every trainable sampled message) marks what is
--- trained; `token_ids` and `prompt_token_ids` stand on the choice itself. Branches become `additional_histories`.
--- `form = "exchanges"`: the raw request and response of every model call (0.5.20 and later).
---
--- An unscored rollout is no trajectory, since ART would read it as reward 0: in a group it is an exception.
local agentbox = require "agentbox.formats.agentbox"
local choice = require "agentbox.formats._choice"
local columns = require "agentbox.record.columns"
local exchanges = require "agentbox.formats._exchanges"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"

local M = {
  api = 1,
  name = "art",
  summary = "OpenPipe ART: a trajectory, or groups of them as lines",
  extension = ".json",
  reads = "columns",
  layout = { indent = 2, ascii = true },
  never = {
    "times, exit codes and errors of tools", "the verifier's report beyond its capped output", "calls of judges",
  },
  options = { form = { "messages", "exchanges" }, tokens = { "any", "require" }, min_group = "number" },
}

local function scalar(value)
  local kind = type(value)
  if kind == "string" or kind == "number" or kind == "boolean" then return value end
  if value == nil or value == json.null then return json.null end
  if json.is_array(value) then
    local parts = {}
    for i, item in ipairs(value) do
      if type(item) ~= "string" and type(item) ~= "number" then return json.encode(value) end
      parts[i] = tostring(item)
    end
    return table.concat(parts, ",")
  end
  return json.encode(value)
end

-- ART before 0.5.20 takes scalars only: lists are joined, the rest is JSON text.
local function metadata_of(t)
  local out = json.object {}
  out.task_id = t.task_id
  out.run_id = t.run_id
  out.final_status = t.final_status
  out.scenario_id = t.task_id
  out.trajectory_id = t.id
  out.stop = t.stop_reason
  out.failure_class = t.failure_class or json.null
  for key, value in pairs(agentbox.metadata(t)) do
    if out[key] == nil then out[key] = scalar(value) end
  end
  out.model = choice.plain(t.line.policy.model) or out.model
  out.error = t.error or out.error
  return out
end

local function metrics_of(t)
  local out, metrics = json.object {}, agentbox.metrics(t)
  out.duration = metrics.duration_s
  out.steps = metrics.steps
  out.tool_calls = metrics.tool_calls
  out.correct = t.final_status == "success" and 1.0 or 0.0
  if metrics.model_calls ~= 0 then out.model_calls = metrics.model_calls end
  if metrics.total_tokens ~= json.null then out.total_tokens = metrics.total_tokens end
  if t.independent then out.independent_reward = t.independent end
  for name, value in pairs(t.components or {}) do
    if type(value) == "table" then name, value = value.name, value.score end
    if type(name) == "string" and type(value) == "number" then out["component/" .. name] = value end
  end
  return out
end

local function logs_of(t)
  local out = json.array {}
  for i, entry in ipairs(t.line.logs or {}) do out[i] = choice.plain(entry.text) end
  return out
end

local calls_of = sys.split { "id", "function.arguments" }

-- The engine may have had to rewrite ids or arguments to be able to go on; a choice holds what was sampled.
local function same_calls(sampled, kept)
  if kept == "null" then kept = nil end
  if sampled == kept then return true end
  local n, ids, arguments = calls_of(sampled or "[]")
  local m, other_ids, other_arguments = calls_of(kept or "[]")
  if not n or n ~= m then return false end
  for i = 1, n do
    if ids[i] ~= other_ids[i] or arguments[i] ~= other_arguments[i] then return false end
  end
  return true
end

local FINISHES = setmetatable({}, { __index = function(_, finish) return json.encode(finish) end })
for _, finish in ipairs { "stop", "tool_calls", "length" } do FINISHES[finish] = json.encode(finish) end

local put_choice = sys.amend({ "finish_reason", "index" }, { "logprobs", "message", "prompt_token_ids", "token_ids" })

local choices_of = sys.sheet {
  finish = "finish_reason", kind = "?message", calls = "!message.tool_calls", logprobs = "&logprobs",
  prompt_token_ids = "&prompt_token_ids", token_ids = "&token_ids",
}

-- The recorded choices of the calls that are trained, as columns, and of each call (from 1) its place in them.
local function recorded(t)
  local texts, place = {}, {}
  local given = choice.given(t, t.call_columns.trainable)
  for call = 1, t.call_columns.n do
    local text = choice.text(given, call)
    if text and text:byte() == 123 then -- "{"
      texts[#texts + 1], place[call] = text, #texts + 1
    end
  end
  return { text = texts, place = place, given = given, of = choices_of(texts) }
end

local function choice_of(job, at, call, lost)
  local t, known = job.t, job.known
  local of, i = known.of, known.place[call]
  local finish = choice.finish(t.call_columns.norm[call], i and of.finish[i])
  if not finish then
    lost("training on calls that ended in a way no Choice may say")
    return nil
  end
  if not i then lost "responses that were not recorded (their choices are made from the messages)" end
  local texts = { logprobs = i and of.logprobs[i] or "null" }
  if i and of.kind[i] == "object" then
    if not same_calls(of.calls[i], t.columns.calls[at]) then
      lost "tool calls as repaired for the history (a choice has what was sampled)"
    end
  else
    texts.message = t.columns.m[at]
  end
  if i then texts.prompt_token_ids, texts.token_ids = of.prompt_token_ids[i], of.token_ids[i] end
  if not choice.add_tokens(job.evidence, call, texts, known.given, job.memo) then lost(choice.NO_TOKENS) end
  return put_choice(i and known.text[i] or "{}", FINISHES[finish], "0", texts.logprobs, texts.message, texts.prompt_token_ids,
    texts.token_ids)
end

-- Templates and servers look at the content of every message.
local function with_content(text)
  local message, out = json.decode(text), json.object {}
  out.role = message.role
  out.content = json.null
  for key, value in pairs(message) do out[key] = value end
  return json.encode(out)
end

-- The messages up to a leaf, and choices in the place of those that are trained.
local function history_of(job, leaf, lost)
  local nodes, trainable, other = job.t.columns, job.t.call_columns.trainable, {}
  local path, origin, calls, content = columns.path(nodes, leaf), nodes.o, nodes.c, nodes.kind
  for _, at in ipairs(path) do
    local call = origin[at] == "sampled" and calls[at]
    if call and trainable[call + 1] and not job.trained[at] then
      job.trained[at] = true
      other[at] = choice_of(job, at, call + 1, lost)
    end
    if not other[at] and not content[at] then other[at] = with_content(nodes.m[at]) end
  end
  return sys.later(sys.list, 1, #path, sys.cells(nodes, "m", other, path))
end

local function other_leaves(t)
  local parents, leaves, nodes = {}, {}, t.columns
  for i = 1, nodes.n do
    if nodes.p[i] then parents[nodes.p[i]] = true end
  end
  for i = 0, nodes.n - 1 do
    if not parents[i] and i ~= t.line.leaf then leaves[#leaves + 1] = i end
  end
  return leaves
end

local function add_messages(t, doc, evidence, lost)
  local job = { t = t, trained = {}, evidence = evidence, memo = {}, known = recorded(t) }
  doc.messages_and_choices = history_of(job, choice.plain(t.line.leaf), lost)
  doc.tools = t.line.tools or json.null
  doc.additional_histories = json.array {}
  for i, leaf in ipairs(other_leaves(t)) do
    local history = json.object {}
    history.messages_and_choices = history_of(job, leaf, lost)
    history.tools = doc.tools
    doc.additional_histories[i] = history
  end
end

local function unfit(t, opts, evidence)
  if not t.scored then return "unscored, and ART would read it as reward 0" end
  local calls, any = t.call_columns, false
  for i = 1, calls.n do
    any = any or calls.trainable[i] == true
    if opts.tokens == "require" and calls.trainable[i] and not tokens.is_rl_grade(evidence[i]) then
      return ("call %d has no token ids from the server"):format(i - 1)
    end
  end
  return not any and "masked: nothing in it is trainable" or nil
end

--- Turns a trajectory into an `art.Trajectory`; an unscored one into nil and the reason.
---@param t agentbox.Traj
---@param opts { form?: "messages"|"exchanges", tokens?: "any"|"require" }
---@return table? doc
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local losses, told = {}, {}
  local function lost(what)
    if not told[what] then told[what], losses[#losses + 1] = true, what end
  end
  local evidence = choice.evidence(t)
  local reason = unfit(t, opts, evidence)
  if reason then return nil, losses, reason end
  local doc = json.object {}
  if opts.form == "exchanges" then
    doc.exchanges = exchanges.of(t, evidence, lost)
  else
    add_messages(t, doc, evidence, lost)
  end
  doc.reward = t.reward + 0.0
  if t.version_min then
    doc.initial_policy_version = t.version_min
    doc.final_policy_version = t.version_max
  end
  doc.metrics = metrics_of(t)
  doc.metadata = metadata_of(t)
  doc.logs = logs_of(t)
  if choice.failed(t) then lost "calls that failed" end
  return doc, losses
end

--- What a rollout that gave no trajectory leaves in its group.
---@param t agentbox.Traj
---@param reason string
---@return table exception   # ART's PydanticException
function M.exception(t, reason)
  local out = json.object {}
  out.type = ("agentbox.%s.%s"):format(t.failure_class or "unfit", t.stop_reason)
  out.message = t.error or ("rollout %s of task %s: %s"):format(t.id, t.task_id, reason)
  out.traceback = ""
  return out
end

local function lost(key, n, size)
  local out = json.object {}
  out.type = "agentbox.lost"
  out.message = ("%d of the %d rollouts of group %s left no record"):format(n, size, key)
  out.traceback = ""
  return out
end

local function too_few(key, docs, exceptions, least)
  local reasons = {}
  for i, exception in ipairs(exceptions) do reasons[i] = ("%s (%s)"):format(exception.type, exception.message) end
  return ("group %s has %d trajectories, fewer than min_group=%d: %s"):format(key, #docs, least,
    #reasons > 0 and table.concat(reasons, "; ") or "no more were recorded")
end

--- An `art.TrajectoryGroup`: as many trajectories and exceptions as rollouts were planned. Nil and why, when fewer than
--- `min_group` can be trained on: what is left of a group has another mean than the group.
---@param key string
---@param docs table[]
---@param exceptions table[]
---@param opts { min_group?: number }
---@param size? integer     # of the planned group
---@return table?
---@return string? problem
function M.join(key, docs, exceptions, opts, size)
  local missing = (size or 0) - #docs - #exceptions
  if missing > 0 then exceptions[#exceptions + 1] = lost(key, missing, size) end
  if opts.min_group and #docs < opts.min_group then return nil, too_few(key, docs, exceptions, opts.min_group) end
  local out = json.object {}
  out.trajectories = json.array(docs)
  out.exceptions = json.array(exceptions)
  out.metadata = json.object {}
  out.metadata.group_id = key
  return out
end

return M

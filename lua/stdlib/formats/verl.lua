--- verl's `AgentLoopOutput` (0.9), one a line. A rollout that forked is several outputs with one `extra_fields.session`, in
--- order, as verl's newer trainer takes them; `mode=strict` gives one or none.
local choice = require "agentbox.formats._choice"
local columns = require "agentbox.record.columns"
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"
local sys = require "agentbox.sys.json"

local M = {
  api = 1,
  name = "verl",
  summary = "verl's AgentLoopOutput: prompt_ids, response_ids, response_mask, response_logprobs",
  extension = ".jsonl",
  lines = true,
  reads = "planes",
  many = true,
  never = rows.NEVER,
  options = rows.OPTIONS,
}

local function seconds(timing, name)
  return (choice.plain(timing[name]) or 0) / 1000.0
end

local function metrics_of(t)
  local timing, out = choice.plain(t.line.timing) or {}, json.object {}
  out.generate_sequences = seconds(timing, "model_ms")
  out.tool_calls = seconds(timing, "tool_ms")
  out.compute_score = seconds(timing, "score_ms")
  out.num_preempted = -1
  return out
end

local function extra_of(t, row, i, n)
  local out, group, index = json.object {}, rows.group(t)
  out.min_global_steps, out.max_global_steps = rows.versions(row)
  out.uid, out.session, out.index, out.of = group, ("%s_%d"):format(t.id, choice.plain(t.line.attempt) or 0), i - 1, n
  out.group_index = index
  out.task_id = t.task_id
  out.truncated = rows.truncated(row)
  local components = t.components
  if components then out.reward_extra_info = components end
  return out
end

local split_roles = sys.split { "role" }

local function roles_of(texts) return select(2, split_roles(texts)) end

local function turns(t)
  local n, roles = 0, roles_of(t.columns.m)
  for _, at in ipairs(columns.path(t.columns, choice.plain(t.line.leaf))) do
    if roles[at] ~= "system" then n = n + 1 end
  end
  return n
end

---@param t agentbox.Traj
---@param opts { mode?: string, realign?: number }
---@return table[]? docs
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local list, reason = rows.of(t, opts)
  if not list then return nil, {}, reason end
  local docs, n_turns = {}, turns(t)
  for i, row in ipairs(list) do
    local out = json.object {}
    out.prompt_ids = rows.list(row, "ids", "prompt")
    out.response_ids = rows.list(row, "ids", "response")
    out.response_mask = rows.list(row, "mask", "response")
    out.response_logprobs = rows.list(row, "lp", "response")
    out.reward_score = rows.reward(t, row)
    out.num_turns = n_turns
    out.metrics = metrics_of(t)
    out.extra_fields = extra_of(t, row, i, #list)
    docs[i] = out
  end
  return docs, rows.losses(t, list)
end

return M

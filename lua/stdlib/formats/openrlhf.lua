--- The dictionary that OpenRLHF's agent executors return, one a line. It is one unbroken sequence: a rollout that forked
--- or drifted is skipped, with the call that did.
local chat = require "agentbox.formats._chat"
local columns = require "agentbox.record.columns"
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"

local M = {
  api = 1,
  name = "openrlhf",
  summary = "OpenRLHF's agent result: observation_tokens, action_ranges, rollout_log_probs",
  extension = ".jsonl",
  lines = true,
  reads = "planes",
  never = { "branches", "calls that failed", "tool timings", "requests" },
  options = {},
}

local function prompt_of(t, row)
  local parts, content = {}, t.message_columns.content
  for i, at in ipairs(columns.path(t.columns, row.calls[1].leaf)) do parts[i] = chat.text(content[at]) end
  return chat.joined(parts, "\\n\\n")
end

---@param t agentbox.Traj
---@return table? doc
---@return string[] losses
---@return string? reason
function M.convert(t)
  local list, reason = rows.of(t, { mode = "strict" })
  if not list then return nil, {}, reason end
  local row, out = list[1], json.object {}
  out.prompt = prompt_of(t, row)
  out.label = t.task_id
  out.observation_tokens = rows.list(row, "ids")
  out.action_ranges = rows.ranges(row)
  out.rollout_log_probs = rows.list(row, "lp")
  out.reward = rows.reward(t, row)
  out.scores = out.reward
  out.truncated = rows.truncated(row) or t.status == "truncated"
  out.extra_logs = json.object {}
  out.extra_logs.turns = #row.calls
  return out, rows.losses(t, list)
end

return M

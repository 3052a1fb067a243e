--- slime's `Sample` as dictionaries, one a line. Rows of one rollout share `rollout_id`, inside which slime's loss averages;
--- with `reward=split` each has its share of the one reward.
---
--- slime counts groups and rollouts with integers. Ours have names, so each number is made of the run's and its name; the names are
--- in `metadata`.
local chat = require "agentbox.formats._chat"
local columns = require "agentbox.record.columns"
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"
local sys = require "agentbox.sys.json"

local M = {
  api = 1,
  name = "slime",
  summary = "slime's Sample: tokens, response_length, loss_mask, rollout_log_probs",
  extension = ".jsonl",
  lines = true,
  reads = "planes",
  many = true,
  never = { "calls that failed", "tool timings", "requests" },
  options = { mode = rows.OPTIONS.mode, realign = "number", reward = { "each", "split" } },
}

local STATUS = { completed = "completed", truncated = "truncated", cancelled = "aborted", failed = "failed" }

local function text_of(t, row)
  local parts, content = {}, t.message_columns.content
  for i, call in ipairs(row.calls) do parts[i] = call.out and chat.text(content[call.out + 1]) or '""' end
  return chat.joined(parts, "\\n")
end

local function prompt_of(t, row)
  local out = {}
  for i, at in ipairs(columns.path(t.columns, row.calls[1].leaf)) do out[i] = t.columns.m[at] end
  return sys.trusted("[" .. table.concat(out, ",") .. "]")
end

local function versions_of(row)
  local out = json.array {}
  for _, call in ipairs(row.calls) do
    for _, segment in ipairs(rows.segments(call)) do out[#out + 1] = tostring(segment.v) end
  end
  return out
end

local function sample_of(t, row, share)
  local out, group, index = json.object {}, rows.group(t)
  out.group_index, out.index, out.session_id = rows.number(t, group), rows.number(t, t.id), t.id
  out.rollout_id = out.index
  out.prompt = prompt_of(t, row)
  out.tokens = rows.list(row, "ids")
  out.response = text_of(t, row)
  out.response_length = row.n - row.prompt_len
  out.loss_mask = rows.list(row, "mask", "response")
  out.rollout_log_probs = rows.list(row, "lp", "response")
  out.reward = rows.reward(t, row) / share
  out.weight_versions = versions_of(row)
  out.status = rows.truncated(row) and "truncated" or STATUS[t.status] or "completed"
  out.metadata = json.object { task_id = t.task_id, trajectory_id = t.id, group_id = group, group_place = index }
  return out
end

---@param t agentbox.Traj
---@param opts { mode?: string, realign?: number, reward?: "each"|"split" }
---@return table[]? docs
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local list, reason = rows.of(t, opts)
  if not list then return nil, {}, reason end
  local docs = {}
  for i, row in ipairs(list) do docs[i] = sample_of(t, row, opts.reward == "split" and #list or 1) end
  return docs, rows.losses(t, list)
end

return M

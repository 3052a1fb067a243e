--- Rows for TRL's `rollout_func`: the keys of the dict that it returns, one row a line; a group's lines, column by column,
--- are that dict. `env_mask` is 1 on ids that the model sampled.
---
--- TRL wants one row for a prompt, so a rollout that forked gives its longest one unless `rows=all`. A row ends with the
--- last sampled id: TRL takes a row that ends otherwise for a truncated one.
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"

local M = {
  api = 1,
  name = "trl",
  summary = "rows for TRL's rollout_func: prompt_ids, completion_ids, logprobs, env_mask",
  extension = ".jsonl",
  lines = true,
  reads = "planes",
  many = true,
  never = rows.NEVER,
  options = { mode = rows.OPTIONS.mode, realign = "number", rows = { "longest", "all" } },
}

local function longest(list)
  local best = list[1]
  for _, row in ipairs(list) do
    if row.n > best.n then best = row end
  end
  return best
end

local function row_of(t, row)
  local out, group, index = json.object {}, rows.group(t)
  local low, high = rows.versions(row)
  out.prompt_ids = rows.list(row, "ids", "prompt")
  out.completion_ids = rows.list(row, "ids", "response")
  out.logprobs = rows.list(row, "lp", "response")
  out.env_mask = rows.list(row, "mask", "response")
  out.reward = rows.reward(t, row)
  out.task_id = t.task_id
  out.trajectory_id = t.id
  out.group_id = group
  out.group_index = index
  out.truncated = rows.truncated(row)
  out.model_version = low
  out.model_version_max = high
  return out
end

---@param t agentbox.Traj
---@param opts { mode?: string, realign?: number, rows?: "longest"|"all" }
---@return table[]? docs
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local list, reason = rows.of(t, opts)
  if not list then return nil, {}, reason end
  local losses = rows.losses(t, list)
  if #list > 1 and opts.rows ~= "all" then
    losses[#losses + 1] = "the shorter rows of rollouts that forked"
    list = { longest(list) }
  end
  local docs = {}
  for i, row in ipairs(list) do docs[i] = row_of(t, row) end
  return docs, losses
end

return M

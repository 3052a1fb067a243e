--- SkyRL's `GeneratorOutput`, one group a line: lists over rows.
---
--- `mode=whole` gives a row for each rollout, which must be one unbroken sequence. `mode=stepwise` gives a row for each call:
--- rows of a rollout stand together and in order, `is_last_step` ends each, and the reward is on the last token of the
--- last step. SkyRL wants as many rows as prompts in the first mode: with `failures=stub` a rollout without a score is a row
--- of one masked token.
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"
local sys = require "agentbox.sys.json"

local M = {
  api = 1,
  name = "skyrl",
  summary = "SkyRL's GeneratorOutput, one group a line: prompt_token_ids, response_ids, loss_masks",
  extension = ".jsonl",
  lines = true,
  reads = "planes",
  never = rows.NEVER,
  options = { mode = { "whole", "stepwise" }, failures = { "skip", "stub" } },
  keep_docs = true,
}

local function reward_of(t, row, stepwise, is_last)
  if not stepwise then return rows.reward(t, row) end
  local n = row.n - row.prompt_len
  local text = ("0.0,"):rep(n - 1) .. json.encode(is_last and rows.reward(t, row) or 0.0)
  return sys.trusted("[" .. text .. "]")
end

local function entry_of(t, row, stepwise, is_last)
  return {
    prompt_token_ids = rows.list(row, "ids", "prompt"), response_ids = rows.list(row, "ids", "response"),
    rewards = reward_of(t, row, stepwise, is_last), loss_masks = rows.list(row, "mask", "response"),
    stop_reasons = row.calls[#row.calls].raw or "stop", rollout_logprobs = rows.list(row, "lp", "response"),
    is_last_step = is_last,
  }
end

--- The rows of a rollout, for `join`.
---@param t agentbox.Traj
---@param opts { mode?: "whole"|"stepwise", failures?: "skip"|"stub" }
---@return table? doc
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local stepwise = opts.mode == "stepwise"
  local list, reason = rows.of(t, { mode = stepwise and "stepwise" or "merge" })
  if not list then return nil, {}, reason end
  if #list > 1 and not stepwise then
    return nil, {}, ("forked into %d rows; mode=stepwise can hold them"):format(#list)
  end
  local _, index = rows.group(t)
  local timing = t.line.timing ~= json.null and t.line.timing or nil
  if json.type(timing) == "raw" then timing = timing:decode() end
  local doc = { t = t, index = index, timing = timing or {} }
  for i, row in ipairs(list) do doc[i] = entry_of(t, row, stepwise, i == #list) end
  return doc, rows.losses(t, list)
end

function M.exception(t)
  local _, index = rows.group(t)
  return {
    t = t, index = index, timing = {},
    { prompt_token_ids = json.array { 0 }, response_ids = json.array { 0 }, rewards = 0.0, loss_masks = json.array { 0 },
      stop_reasons = "error", rollout_logprobs = json.array { 0.0 }, is_last_step = true },
  }
end

local COLUMNS = { "prompt_token_ids", "response_ids", "rewards", "loss_masks", "stop_reasons", "rollout_logprobs", "is_last_step" }

local function by_index(a, b)
  if a.index ~= b.index then return a.index < b.index end
  return a.t.id < b.t.id
end

local function trajectory_id(doc, place)
  local out = json.object {}
  out.instance_id = doc.t.task_id
  out.repetition_id = doc.index > 0 and doc.index or place - 1
  return out
end

local function fill(out, docs, stepwise)
  for _, name in ipairs(COLUMNS) do
    out[name] = json.array {}
  end
  out.trajectory_ids = json.array {}
  out.trajectory_generation_times = json.array {}
  for place, doc in ipairs(docs) do
    for _, entry in ipairs(doc) do
      for _, name in ipairs(COLUMNS) do table.insert(out[name], entry[name]) end
      table.insert(out.trajectory_ids, trajectory_id(doc, place))
    end
    table.insert(out.trajectory_generation_times, (doc.timing.total_ms or 0) / 1000.0)
  end
  if not stepwise then out.is_last_step = json.null end
end

--- A group's `GeneratorOutput`.
---@param key string
---@param docs table[]
---@param exceptions table[]
---@param opts { mode?: string, failures?: string }
---@return table?
---@return string? problem
function M.join(key, docs, exceptions, opts)
  local stepwise = opts.mode == "stepwise"
  if opts.failures == "stub" then
    for _, stub in ipairs(exceptions) do
      if stepwise then stub[1].rewards = json.array { 0.0 } end
      table.insert(docs, stub)
    end
  end
  if #docs == 0 then return nil end
  table.sort(docs, by_index)
  local out = json.object {}
  fill(out, docs, stepwise)
  out.rollout_metrics = json.object {}
  out.rollout_metrics.group_id = key
  return out
end

return M

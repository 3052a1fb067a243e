--- Rows for training on ids without a tokenizer: `input_ids`, `attention_mask`, and `labels` that are -100 wherever the
--- model did not sample. The only form of supervised fine-tuning in which nothing is tokenized again.
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"

local M = {
  api = 1,
  name = "pretokenized",
  summary = "pre-tokenized rows: input_ids, attention_mask, labels",
  extension = ".jsonl",
  lines = true,
  reads = "planes",
  many = true,
  never = { "messages", "reward and metrics", "log-probs", "calls that failed", "requests" },
  options = rows.OPTIONS,
}

---@param t agentbox.Traj
---@param opts { mode?: string, realign?: number }
---@return table[]? docs
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local list, reason = rows.of(t, opts)
  if not list then return nil, {}, reason end
  local docs = {}
  for i, row in ipairs(list) do
    local out = json.object {}
    out.input_ids = rows.list(row, "ids")
    out.attention_mask = rows.fill(row, "1")
    out.labels = rows.list(row, "labels")
    docs[i] = out
  end
  return docs, rows.losses(t, list)
end

return M

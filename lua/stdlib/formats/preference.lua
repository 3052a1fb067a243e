--- TRL's preference rows: the best and the worst rollout of a group, `{"prompt","chosen","rejected","tools"}`. With
--- `form=unpaired` every rollout is a row `{"prompt","completion","label"}`; the label says whether it reached `threshold`.
---
--- Both sides of a pair have the same prompt, message for message, and different rewards; a group without such a pair
--- gives no row, and is told as skipped.
local completion = require "agentbox.formats.prompt_completion"
local sys = require "agentbox.sys.json"

local TEXTS = { prompt = true, completion = true, chosen = true, rejected = true, tools = true }
local put_pair = sys.row({ "prompt", "chosen", "rejected", "tools" }, TEXTS)
local put_unpaired = sys.row({ "prompt", "completion", "label", "tools" }, TEXTS)

local options = { form = { "pairs", "unpaired" }, threshold = "number", margin = "number" }
for name, allowed in pairs(completion.options) do options[name] = allowed end

local M = {
  api = 1,
  name = "preference",
  summary = "TRL's preference pairs, the best and the worst of a group; or unpaired rows with a label",
  extension = ".jsonl",
  lines = true,
  reads = "messages",
  never = completion.never,
  options = options,
  keep_docs = true,
}

---@param t agentbox.Traj
---@param opts table
---@return table? doc
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  if not t.scored then return nil, {}, "unscored" end
  local doc, losses = completion.parts(t, opts)
  if not doc then return nil, {}, losses end
  doc.reward, doc.id = t.reward, t.id
  return doc, losses
end

local function unpaired(docs, threshold)
  local out = {}
  for i, doc in ipairs(docs) do
    out[i] = sys.trusted(put_unpaired(doc.prompt, doc.completion, doc.reward >= (threshold or 0.5), doc.tools))
  end
  return out
end

-- The best rollout and the worst one with its prompt: ties go to the first one by id.
local function ends_of(docs)
  table.sort(docs, function(a, b)
    if a.reward ~= b.reward then return a.reward > b.reward end
    return a.id < b.id
  end)
  local best = docs[1]
  for i = #docs, 2, -1 do
    if docs[i].prompt == best.prompt then return best, docs[i] end
  end
end

--- A group's pair, or its unpaired rows; nil and why when there is none.
---@param _ string
---@param docs table[]
---@param _ table[]
---@param opts { form?: string, threshold?: number, margin?: number }
---@return table?
---@return string? problem
---@return string? skipped
function M.join(_, docs, _, opts)
  if opts.form == "unpaired" then
    if #docs == 0 then return nil end
    return unpaired(docs, opts.threshold)
  end
  local best, worst = ends_of(docs)
  if not worst or best.reward - worst.reward <= (opts.margin or 0) then
    return nil, nil, "no two rollouts of one prompt in the group have different rewards"
  end
  return { sys.trusted(put_pair(best.prompt, best.completion, worst.completion, best.tools)) }
end

M.many = true

return M

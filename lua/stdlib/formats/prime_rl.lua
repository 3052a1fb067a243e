--- prime-rl's `TrainingSample` as objects, one a line: four lists of one length. Advantages are the trainer's to compute, so
--- the reward and the group stand beside them.
local choice = require "agentbox.formats._choice"
local json = require "agentbox.json"
local rows = require "agentbox.formats._rows"

local M = {
  api = 1,
  name = "prime_rl",
  summary = "prime-rl's TrainingSample: token_ids, mask, logprobs, temperatures",
  extension = ".jsonl",
  lines = true,
  reads = "planes",
  many = true,
  never = rows.NEVER,
  options = rows.OPTIONS,
}

local function temperature(row)
  local text = row.calls[1].sampling
  local sampling = text and choice.plain(json.decode(text)) or {}
  return ("%.14g"):format(choice.plain(sampling.temperature) or 1.0)
end

---@param t agentbox.Traj
---@param opts { mode?: string, realign?: number }
---@return table[]? docs
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local list, reason = rows.of(t, opts)
  if not list then return nil, {}, reason end
  local docs, agent = {}, choice.plain(t.line.agent) or {}
  for i, row in ipairs(list) do
    local out = json.object {}
    out.token_ids = rows.list(row, "ids")
    out.mask = rows.list(row, "bool")
    out.logprobs = rows.list(row, "lp")
    out.temperatures = rows.fill(row, temperature(row))
    out.env_name = agent.name or "agentbox"
    out.reward = rows.reward(t, row)
    out.group_id = (rows.group(t))
    out.trajectory_id = t.id
    docs[i] = out
  end
  return docs, rows.losses(t, list)
end

return M

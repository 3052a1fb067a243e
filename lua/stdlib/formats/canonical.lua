--- The record itself, `agentbox.trajectory/1`, one line per rollout; nothing is lost but what lies in blobs.
local frame = require "agentbox.store.frame"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local M = {
  api = 1,
  name = "canonical",
  summary = "the whole record (agentbox.trajectory/1), one line per rollout",
  extension = ".jsonl",
  lines = true,
  reads = "line",
  never = { "the files in the run's blobs (large bodies, artifacts)" },
}

---@param t agentbox.Traj
---@return string line      # with its sum
---@return string[] losses
function M.convert(t)
  return sys.trusted(t.text or frame.close(json.encode(t.line)):sub(1, -2)), {}
end

return M

--- Rows for supervised fine-tuning: `{"messages":[...],"tools":[...]}`, OpenAI's chat messages (API specification of
--- 2025). The row ends with the last assistant message.
local chat = require "agentbox.formats._chat"
local json = require "agentbox.json"

local M = {
  api = 1,
  name = "openai",
  summary = "messages for supervised fine-tuning, one row per rollout",
  extension = ".jsonl",
  lines = true,
  reads = "messages",
  never = chat.NEVER,
  options = chat.OPTIONS,
}

--- Turns a trajectory into a row; nil and the reason when it makes none.
---@param t agentbox.Traj
---@param opts { tool_args: string, bad_args: string, reasoning: string, unscored?: boolean, min_reward?: number }
---@return table? row
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local messages, losses = chat.messages(t, opts)
  if not messages then return nil, {}, losses end
  local row = json.object {}
  row.messages = messages
  row.tools = chat.tools(t)
  return row, losses
end

return M

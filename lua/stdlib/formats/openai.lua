--- Rows for supervised fine-tuning: `{"messages":[...],"tools":[...]}`, OpenAI's chat messages (API specification of
--- 2025). The row ends with the last assistant message.
local chat = require "agentbox.formats._chat"
local sys = require "agentbox.sys.json"

local put_row = sys.row({ "messages", "tools" }, { messages = true, tools = true })

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
---@return agentbox.JsonRaw? row
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local messages, losses = chat.columns(t, opts)
  if not messages then return nil, {}, losses end
  return sys.trusted(put_row(chat.list(messages, 1, messages.n), chat.tools(t))), losses
end

return M

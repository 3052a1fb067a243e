--- TRL's prompt/completion rows in its conversational form: `{"prompt":[...],"completion":[...],"tools":[...]}`. The loss is
--- on the completion, which begins with the first message that the model sampled, or with the last one (`from=last`).
local chat = require "agentbox.formats._chat"
local json = require "agentbox.json"

local options = { from = { "first", "last" }, tools = { "list", "string" } }
for name, allowed in pairs(chat.OPTIONS) do options[name] = allowed end

local M = {
  api = 1,
  name = "prompt_completion",
  summary = "TRL's prompt and completion, for a loss on what was sampled",
  extension = ".jsonl",
  lines = true,
  reads = "messages",
  never = chat.NEVER,
  options = options,
}

-- Where the completion begins; nil when nothing was sampled.
local function split_of(path, n, from)
  local at
  for i = 1, n do
    if path[i].node.o == "sampled" then
      at = i
      if from == "first" then return i end
    end
  end
  return at
end

---@param t agentbox.Traj
---@param opts table
---@return table? row
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local messages, losses, path = chat.messages(t, opts)
  if not messages then return nil, {}, losses end
  local at = split_of(path, #messages, opts.from)
  if not at then return nil, {}, "no sampled message" end
  local row = json.object {}
  row.prompt = json.array(table.move(messages, 1, at - 1, 1, {}))
  row.completion = json.array(table.move(messages, at, #messages, 1, {}))
  local tools = chat.tools(t)
  row.tools = tools and opts.tools == "string" and json.encode(tools) or tools
  return row, losses
end

return M

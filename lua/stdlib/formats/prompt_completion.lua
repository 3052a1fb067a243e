--- TRL's prompt/completion rows in its conversational form: `{"prompt":[...],"completion":[...],"tools":[...]}`. The loss is
--- on the completion, which begins with the first message that the model sampled, or with the last one (`from=last`).
local chat = require "agentbox.formats._chat"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

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

local put_row = sys.row({ "prompt", "completion", "tools" }, { prompt = true, completion = true, tools = true })

-- Where the completion begins; nil when nothing was sampled.
local function split_of(t, path, n, from)
  local at
  for i = 1, n do
    if t.columns.o[path[i]] == "sampled" then
      at = i
      if from == "first" then return i end
    end
  end
  return at
end

--- The parts of a row, as JSON texts; nil and the reason when it makes none.
---@param t agentbox.Traj
---@param opts table
---@return { prompt: string, completion: string, tools: string? }? parts
---@return string[]|string losses   # or the reason
function M.parts(t, opts)
  local messages, losses, path = chat.columns(t, opts)
  if not messages then return nil, losses end
  local at = split_of(t, path, messages.n, opts.from)
  if not at then return nil, "no sampled message" end
  local tools = chat.tools(t)
  return {
    prompt = chat.list(messages, 1, at - 1), completion = chat.list(messages, at, messages.n),
    tools = tools and opts.tools == "string" and json.encode(tools) or tools,
  }, losses
end

---@param t agentbox.Traj
---@param opts table
---@return agentbox.JsonRaw? row
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local parts, losses = M.parts(t, opts)
  if not parts then return nil, {}, losses end
  return sys.trusted(put_row(parts.prompt, parts.completion, parts.tools)), losses
end

return M

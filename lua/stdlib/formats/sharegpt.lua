--- ShareGPT conversations as LLaMA-Factory reads them: `{"conversations":[{"from","value"}],"system","tools"}`, roles human,
--- gpt, function_call and observation, by turns.
---
--- The form cannot say a turn of text and a call, several calls at once, or two turns of one side in a row. Several calls of
--- one turn become one `function_call` with a list and one `observation`; a turn of text and calls is skipped, or loses its
--- text with `mixed=drop_text`.
local chat = require "agentbox.formats._chat"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local put_row = sys.row({ "conversations", "system", "tools" }, { conversations = true, system = true })
local put_turn = sys.row({ "from", "value" }, { value = true })
local put_call = sys.row({ "name", "arguments" }, { name = true, arguments = true })

local M = {
  api = 1,
  name = "sharegpt",
  summary = "ShareGPT conversations, as LLaMA-Factory reads them",
  extension = ".jsonl",
  lines = true,
  reads = "messages",
  never = { "reward and metrics", "log-probs and token ids", "tool timings", "requests", "ids of tool calls" },
  options = {
    mixed = { "skip", "drop_text" }, bad_args = chat.OPTIONS.bad_args, reasoning = { "drop", "inline" },
    unscored = "boolean", min_reward = "number",
  },
}

-- The calls of one turn: JSON text in a string.
local function calls_text(n, _, names, arguments)
  local list = {}
  for i = 1, n do list[i] = put_call(names[i], arguments[i]) end
  return json.encode(n == 1 and list[1] or "[" .. table.concat(list, ",") .. "]")
end

-- Two JSON texts of strings as one, with an escape between them.
local function joined(first, between, second) return first:sub(1, -2) .. between .. second:sub(2) end

local FROM = { user = "human", tool = "observation", assistant = "gpt" }

-- Whether the JSON text of a string has more in it than blanks; usually its first letter tells.
local function is_visible(text)
  return text ~= '""' and (text:find '^"%s*[^%s\\"]' or json.decode(text):find "%S") ~= nil
end

-- One message as a turn, or nil and why not.
local function turn_of(role, content, calls, opts, lost)
  local text = chat.text(content)
  if role ~= "assistant" or not calls then return { from = FROM[role], value = text } end
  if is_visible(text) then
    if opts.mixed == "skip" then return nil, "a turn has text and a tool call, which ShareGPT cannot say" end
    lost["text beside tool calls"] = true
  end
  return { from = "function_call", value = calls }
end

-- Results of one turn's calls are one observation, as the calls are one turn.
local function put(list, one)
  local last = list[#list]
  if last and last.from == "observation" and one.from == "observation" then
    last.value = joined(last.value, "\\n", one.value)
  else
    list[#list + 1] = one
  end
end

local ASKS = { human = true, observation = true }

local function out_of_turn(list)
  for i, one in ipairs(list) do
    if (ASKS[one.from] or false) ~= (i % 2 == 1) then return ("turn %d is out of order (%s)"):format(i, one.from) end
  end
end

local function conversation(messages, opts, lost)
  local list, system = {}, nil
  for i = 1, messages.n do
    local role, content = messages.role[i], messages.content[i]
    if role == "system" or role == "developer" then
      local text = chat.text(content)
      system = system and joined(system, "\\n\\n", text) or text
    else
      local one, why = turn_of(role, content, messages.calls[i], opts, lost)
      if not one then return nil, why end
      put(list, one)
    end
  end
  local why = out_of_turn(list)
  if why then return nil, why end
  for i, one in ipairs(list) do list[i] = put_turn(one.from, one.value) end
  return "[" .. table.concat(list, ",") .. "]", system
end

---@param t agentbox.Traj
---@param opts table
---@return agentbox.JsonRaw? row
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local messages, losses = chat.columns(t, {
    tool_args = "object", bad_args = opts.bad_args, reasoning = opts.reasoning, unscored = opts.unscored,
    min_reward = opts.min_reward,
  }, calls_text)
  if not messages then return nil, {}, losses end
  local lost = {}
  local list, system = conversation(messages, opts, lost)
  if not list then return nil, {}, system end
  for what in pairs(lost) do losses[#losses + 1] = what end
  return sys.trusted(put_row(list, system, chat.tools(t) or "")), losses
end

return M

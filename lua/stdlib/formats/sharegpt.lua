--- ShareGPT conversations as LLaMA-Factory reads them: `{"conversations":[{"from","value"}],"system","tools"}`, roles human,
--- gpt, function_call and observation, by turns.
---
--- The form cannot say a turn of text and a call, several calls at once, or two turns of one side in a row. Several calls of
--- one turn become one `function_call` with a list and one `observation`; a turn of text and calls is skipped, or loses its
--- text with `mixed=drop_text`.
local chat = require "agentbox.formats._chat"
local json = require "agentbox.json"
local traj = require "agentbox.traj"

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

local function calls_text(calls)
  local list = json.array {}
  for i, call in ipairs(calls) do
    local item = json.object {}
    item.name = call["function"].name
    item.arguments = call["function"].arguments
    list[i] = item
  end
  return json.encode(#list == 1 and list[1] or list)
end

local function turn(from, value)
  local out = json.object {}
  out.from, out.value = from, value
  return out
end

-- One message as a turn, or nil and why not.
local function turn_of(message, opts, lost)
  if message.role == "user" then return turn("human", traj.text(message)) end
  if message.role == "tool" then return turn("observation", traj.text(message)) end
  local text, calls = traj.text(message), message.tool_calls
  if not calls then return turn("gpt", text) end
  if text:find "%S" then
    if opts.mixed == "skip" then return nil, "a turn has text and a tool call, which ShareGPT cannot say" end
    lost["text beside tool calls"] = true
  end
  return turn("function_call", calls_text(calls))
end

-- Results of one turn's calls are one observation, as the calls are one turn.
local function put(list, one)
  local last = list[#list]
  if last and last.from == "observation" and one.from == "observation" then
    last.value = last.value .. "\n" .. one.value
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
  local list, system = json.array {}, {}
  for _, message in ipairs(messages) do
    if message.role == "system" or message.role == "developer" then
      system[#system + 1] = traj.text(message)
    else
      local one, why = turn_of(message, opts, lost)
      if not one then return nil, why end
      put(list, one)
    end
  end
  local why = out_of_turn(list)
  if why then return nil, why end
  return list, #system > 0 and table.concat(system, "\n\n") or nil
end

---@param t agentbox.Traj
---@param opts table
---@return table? row
---@return string[] losses
---@return string? reason
function M.convert(t, opts)
  local messages, losses = chat.messages(t, {
    tool_args = "object", bad_args = opts.bad_args, reasoning = opts.reasoning, unscored = opts.unscored,
    min_reward = opts.min_reward,
  })
  if not messages then return nil, {}, losses end
  local lost = {}
  local list, system = conversation(messages, opts, lost)
  if not list then return nil, {}, system end
  for what in pairs(lost) do losses[#losses + 1] = what end
  local row = json.object {}
  row.conversations = list
  row.system = system
  local tools = chat.tools(t)
  row.tools = tools and json.encode(tools) or ""
  return row, losses
end

return M

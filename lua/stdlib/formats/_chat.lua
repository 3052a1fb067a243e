--- Messages as rows for supervised fine-tuning have them, shared by the formats.
---
--- A null content becomes "" (templates iterate over it) and an empty `tool_calls` is left out. Arguments of tool calls stay
--- the model's own text, or become objects for templates that walk through them.
local choice = require "agentbox.formats._choice"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local M = {
  --- What the formats of messages take besides their own options.
  OPTIONS = {
    tool_args = { "string", "object" },
    bad_args = { "drop", "keep" },
    reasoning = { "keep", "drop", "inline" },
    unscored = "boolean",
    min_reward = "number",
  },
  NEVER = { "reward and metrics", "log-probs and token ids", "tool timings", "requests" },
}

local new_call, new_function = sys.shape("id", "type", "function"), sys.shape("name", "arguments")
local new_message, new_answer = sys.shape("role", "content"), sys.shape("role", "content", "tool_call_id")

local ROLES = { system = true, user = true, assistant = true, tool = true, developer = true }

-- Arguments as the row wants them, or nil when they are no JSON object.
local function arguments_of(text, opts, found)
  if opts.tool_args == "object" then
    local value = json.decode(text)
    if json.is_object(value) then return value end
  elseif text:find "^%s*{" and json.raw(text) then -- its grammar is checked, nothing is made of it
    return text
  end
  found.bad = found.bad + 1
  if opts.bad_args == "keep" then return text end
  return nil
end

local function calls_of(calls, opts, found)
  local out = json.array {}
  for i, call in ipairs(calls) do
    local fn = call["function"]
    out[i] = new_call(call.id, "function", new_function(fn.name, arguments_of(fn.arguments, opts, found)))
  end
  return out
end

local function reasoning_of(message)
  for _, name in ipairs { "reasoning_content", "reasoning" } do
    if type(message[name]) == "string" and message[name] ~= "" then return message[name] end
  end
end

local function message_of(message, opts, found)
  local calls, content = choice.plain(message.tool_calls), choice.plain(message.content) or ""
  if message.role == "tool" and message.tool_call_id and not calls then return new_answer("tool", content, message.tool_call_id) end
  local thought = reasoning_of(message)
  if thought and opts.reasoning == "inline" then
    content = ("<think>\n%s\n</think>\n\n%s"):format(thought, type(content) == "string" and content or "")
  end
  local out = new_message(message.role, content)
  if thought and opts.reasoning == "keep" then out.reasoning_content = thought end
  if thought and opts.reasoning == "drop" then found.reasoning = found.reasoning + utf8.len(thought) end
  if calls and #calls > 0 then out.tool_calls = calls_of(calls, opts, found) end
  if message.tool_call_id then out.tool_call_id = message.tool_call_id end
  if message.name and message.role ~= "tool" then out.name = message.name end
  return out
end

local function last_assistant(path)
  for i = #path, 1, -1 do
    if path[i].message.role == "assistant" then return i end
  end
end

local function unfit(t, opts)
  if not t.scored and not opts.unscored then return "unscored" end
  if opts.min_reward and (not t.scored or t.reward < opts.min_reward) then
    return ("reward below %g"):format(opts.min_reward)
  end
end

local function losses_of(t, path, last, found)
  local losses = {}
  if found.reasoning > 0 then losses[#losses + 1] = ("%d characters of reasoning"):format(found.reasoning) end
  if found.bad > 0 then
    losses[#losses + 1] = ("%d tool calls whose arguments are no JSON object, kept"):format(found.bad)
  end
  if last < #path then losses[#losses + 1] = "messages after the last assistant message" end
  if #path < #t.line.nodes then losses[#losses + 1] = "branches beside the main thread" end
  return losses
end

--- The messages of a rollout's main thread, up to the last one of the assistant.
---
--- Returns nil and the reason when there is no row in it.
---@param t agentbox.Traj
---@param opts { tool_args: string, bad_args: string, reasoning: string, unscored?: boolean, min_reward?: number }
---@return agentbox.Message[]? messages
---@return string[]|string losses   # or the reason
---@return table[]? path            # the steps that the messages were made of
function M.messages(t, opts)
  local reason = unfit(t, opts)
  if reason then return nil, reason end
  local path, found = t:path(), { bad = 0, reasoning = 0 }
  local last = last_assistant(path)
  if not last then return nil, "no assistant message" end
  local messages = json.array {}
  for i = 1, last do
    if not ROLES[path[i].message.role] then return nil, "a message of role " .. tostring(path[i].message.role) end
    messages[i] = message_of(path[i].message, opts, found)
  end
  if found.bad > 0 and opts.bad_args == "drop" then
    return nil, ("%d tool calls whose arguments are no JSON object"):format(found.bad)
  end
  return messages, losses_of(t, path, last, found), path
end

--- The schemas of the tools, nil when there were none.
---@param t agentbox.Traj
---@return table[]?
function M.tools(t)
  return t.tools and #t.tools > 0 and t.tools or nil
end

return M

--- Messages as rows for supervised fine-tuning have them, shared by the formats.
---
--- A null content becomes "" (templates iterate over it) and an empty `tool_calls` is left out. Arguments of tool calls stay
--- the model's own text, or become objects for templates that walk through them.
local columns = require "agentbox.record.columns"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local traj = require "agentbox.traj"

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

local ROLES = { system = true, user = true, assistant = true, tool = true, developer = true }

local of_calls = sys.split { "&id", "&function.name", "&function.arguments", "$function.arguments" }

local put_messages = sys.rows({ "role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name" },
  { content = true, tool_calls = true, tool_call_id = true, name = true })
local put_call = sys.row({ "id", "type", "function" }, { id = true, ["function"] = true })
local put_function = sys.row({ "name", "arguments" }, { name = true, arguments = true })

-- Arguments as the row wants them, as JSON text, or nil when they are no JSON object.
local function arguments_of(text, slice, opts, found)
  if opts.tool_args == "object" then
    local value = text and json.decode(text)
    if json.is_object(value) then return json.encode(value) end
  elseif text and text:find "^%s*{" and sys.valid(text) then -- its grammar is checked, nothing is made of it
    return slice
  end
  found.bad = found.bad + 1
  if opts.bad_args == "keep" then return slice end
  return nil
end

-- Calls as most formats have them: a JSON list, of JSON texts.
local function as_list(n, ids, names, arguments)
  local list = {}
  for i = 1, n do list[i] = put_call(ids[i], "function", put_function(names[i], arguments[i])) end
  return "[" .. table.concat(list, ",") .. "]"
end

-- What `put` makes of the calls of a message; nil for none.
local function calls_of(text, opts, found, put)
  local n, ids, names, slices, texts = of_calls(text)
  if not n or n == 0 then return nil end
  for i = 1, n do texts[i] = arguments_of(texts[i], slices[i], opts, found) end
  return put(n, ids, names, texts)
end

-- A thought put before what was said, in one text.
local function inlined(thought, content)
  local before = json.encode(("<think>\n%s\n</think>\n\n"):format(thought))
  return content:byte() == 34 and before:sub(1, -2) .. content:sub(2) or before
end

local function thought_of(first, second)
  if first and first ~= "" then return first end
  return second ~= "" and second or nil
end

local function last_assistant(roles, n)
  for i = n, 1, -1 do
    if roles[i] == "assistant" then return i end
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
  if #path < t.columns.n then losses[#losses + 1] = "branches beside the main thread" end
  return losses
end

-- What was thought goes where the options say.
local function place_thought(of, i, thought, opts, found)
  of.thought[i] = nil
  if opts.reasoning == "inline" then of.content[i] = inlined(thought, of.content[i])
  elseif opts.reasoning == "keep" then of.thought[i] = thought
  else found.reasoning = found.reasoning + utf8.len(thought) end
end

-- One message, in its place in the columns.
local function settle(of, i, opts, found, put)
  local content, calls = of.content[i], of.calls[i]
  if not content or content == "null" then of.content[i] = '""' end
  if calls then
    calls = calls ~= "null" and calls_of(calls, opts, found, put) or nil
    of.calls[i] = calls
  end
  local is_result = of.role[i] == "tool"
  if is_result then of.name[i] = nil end
  local thought = (of.thought[i] ~= nil or of.reasoning[i] ~= nil) and thought_of(of.thought[i], of.reasoning[i])
  if not thought or is_result and of.id[i] and not calls then of.thought[i] = nil return end
  place_thought(of, i, thought, opts, found)
end

---@class agentbox.ChatColumns
---@field n integer
---@field role string[]
---@field content string[]         # JSON texts: a string, or a list of parts
---@field calls (string?)[]        # what `put` made of them
---@field thought (string?)[]      # where reasoning is kept
---@field id (string?)[]           # JSON texts: the call that it answers
---@field name (string?)[]         # JSON texts

--- The messages of a rollout's main thread, up to the last one of the assistant, as columns. Calls are what `put` makes of
--- the JSON texts of their ids, names and arguments; by default the list of them.
---
--- Returns nil and the reason when there is no row in it.
---@param t agentbox.Traj
---@param opts { tool_args: string, bad_args: string, reasoning: string, unscored?: boolean, min_reward?: number }
---@param put? fun(n: integer, ids: string[], names: string[], arguments: string[]): string
---@return agentbox.ChatColumns? columns
---@return string[]|string losses   # or the reason
---@return integer[]? path          # the places of their nodes in t.columns
function M.columns(t, opts, put)
  local reason = unfit(t, opts)
  if reason then return nil, reason end
  local path, found = columns.path(t.columns, json.plain(t.line.leaf)), { bad = 0, reasoning = 0 }
  local of = columns.along(t.columns, path)
  of.n = last_assistant(of.role, of.n)
  if not of.n then return nil, "no assistant message" end
  for i = 1, of.n do
    if not ROLES[of.role[i]] then return nil, "a message of role " .. tostring(of.role[i]) end
    settle(of, i, opts, found, put or as_list)
  end
  if found.bad > 0 and opts.bad_args == "drop" then
    return nil, ("%d tool calls whose arguments are no JSON object"):format(found.bad)
  end
  return of, losses_of(t, path, of.n, found), path
end

--- Some of the messages as a JSON list.
---@param of agentbox.ChatColumns
---@param from integer
---@param to integer
---@return string
function M.list(of, from, to)
  return put_messages(from, to, of.role, of.content, of.thought, of.calls, of.id, of.name)
end

--- A content's text, as the JSON text of a string: the text parts of a list, joined.
---@param content string?    # JSON text
---@return string
function M.text(content)
  if content and content:byte() == 34 then return content end
  return json.encode(traj.text { content = content and json.decode(content) })
end

--- The JSON texts of strings as one, with an escape between them.
---@param texts string[]
---@param between string
---@return agentbox.JsonRaw
function M.joined(texts, between)
  for i, text in ipairs(texts) do texts[i] = text:sub(2, -2) end
  return sys.trusted('"' .. table.concat(texts, between) .. '"')
end

--- The schemas of the tools as JSON text, nil when there were none.
---@param t agentbox.Traj
---@return string?
function M.tools(t)
  local tools = t.line.tools
  if tools == nil or tools == json.null then return nil end
  local text = json.type(tools) == "raw" and tools:text() or json.encode(tools)
  return not text:find "^%[%s*%]$" and text or nil
end

return M

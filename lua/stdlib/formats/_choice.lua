--- Choices of recorded responses, shared by the formats. A choice is an element of `choices` in OpenAI's
--- chat completion object (OpenAI API specification of 2025); log-probs and token ids stay JSON text, unless
--- the server broke its reply into lines, which a line of JSON cannot hold.
local json = require "agentbox.json"

local M = {}

local AS_TEXT = { raw = { "logprobs", "token_ids", "prompt_token_ids", "prompt_logprobs" } }

--- A field that may be JSON text or null, as a Lua value.
---@param field any
---@return any
function M.plain(field)
  if json.type(field) == "raw" then return field:decode() end
  if field == json.null then return nil end
  return field
end

--- The message of a node.
---@param node table
---@return agentbox.Message
function M.message(node)
  return M.plain(node.m)
end

--- Whether any call has a value under `name`.
---@param calls table[]
---@param name string
---@return boolean
function M.any(calls, name)
  for _, call in ipairs(calls) do
    if call[name] ~= nil and call[name] ~= json.null then return true end
  end
  return false
end

--- The call that a sampled node came of.
---@param t agentbox.Traj
---@param node table
---@return table? call
function M.call(t, node)
  return node.c and node.c ~= json.null and t.line.calls[node.c + 1] or nil
end

--- The whole response of a call as an ordered object, nil without one that is a JSON object.
---@param t agentbox.Traj
---@param call table
---@return table?
function M.response(t, call)
  local text = t:body(call, "response")
  local doc = text and json.decode(text, not text:find("\n", 1, true) and AS_TEXT or nil)
  return json.is_object(doc) and doc or nil
end

--- The choice that a sampled node came of, as the server sent it; nil when there is none on record.
---@param t agentbox.Traj
---@param node table
---@return table? choice
---@return table? response
function M.of(t, node)
  local call = M.call(t, node)
  if not call then return nil end
  if call.choice then return M.plain(call.choice) end
  local response = M.response(t, call)
  local choices = response and response.choices
  return type(choices) == "table" and choices[1] or nil, response
end

return M

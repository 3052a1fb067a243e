--- A client of the scripted server, for the tests of chat completions.
local model = require "agentbox.model"

local M = {}

---@param fake { url: string }
---@param opts? table
---@return agentbox.Model
function M.open(fake, opts)
  local all = { model = "fake", base_url = fake.url, api_key = "sk-test-123456", retry_base_s = 0.002, proxy = false }
  for key, value in pairs(opts or {}) do all[key] = value end
  return model.open(all)
end

---@param text? string
---@return agentbox.Request
function M.ask(text)
  return { messages = { { role = "user", content = text or "hi" } }, session = "s1" }
end

--- Runs a conversation the way an agent does: every reply and an answer to each of its calls go into the history.
---@param m agentbox.Model
---@param request agentbox.Request
---@param turns integer
---@return agentbox.Response last
function M.converse(m, request, turns)
  local last
  for _ = 1, turns do
    last = assert(m:complete(request))
    request.messages[#request.messages + 1] = last.message
    for _, call in ipairs(last.message.tool_calls or {}) do
      request.messages[#request.messages + 1] = { role = "tool", tool_call_id = call.id, content = "ok" }
    end
    if not last.message.tool_calls then break end
  end
  return last
end

return M

--- What `agentbox doctor` asks a model server: does it chat, does it take tools. With a hint when it does not.
local err = require "agentbox.err"

local M = {}

---@class agentbox.Probe
---@field ok boolean
---@field kind "chat"|"tools"
---@field model string
---@field base_url string?
---@field message string
---@field hint string?
---@field details table

local SERVER_HINT = "Check that the server runs, that base_url is right (it usually ends in /v1) and that it serves "
  .. "a model of this name."
local TOOLS_HINT = "Start vLLM with --enable-auto-tool-choice --tool-call-parser NAME (hermes for Qwen); with Ollama, "
  .. "use a model that supports tools."

local ADD = {
  type = "function",
  ["function"] = {
    name = "add", description = "Add two integers.",
    parameters = {
      type = "object", required = { "a", "b" },
      properties = { a = { type = "integer" }, b = { type = "integer" } },
    },
  },
}

local function result_of(model, kind)
  local about = model:describe()
  local base_url = about.base_urls and about.base_urls[1] or nil
  return { ok = false, kind = kind, model = model.name, base_url = base_url, details = {} }
end

local function ask(model, prompt, limit, extra)
  local about = model:describe()
  local most = about.sampling and about.sampling.max_tokens or limit
  local request = {
    messages = { { role = "user", content = prompt } },
    sampling = { temperature = 0, max_tokens = math.min(most, limit) },
  }
  for key, value in pairs(extra or {}) do request[key] = value end
  return model:complete(request)
end

--- Asks for one word.
---@async
---@param model agentbox.Model
---@return agentbox.Probe
function M.chat(model)
  local result = result_of(model, "chat")
  local response, problem = ask(model, "Reply with the single word: pong", 32)
  if not response then
    result.message, result.hint = err.is(problem) and problem.msg or tostring(problem), problem.hint or SERVER_HINT
    return result
  end
  local content = response.message.content
  result.ok = true
  result.message = "replied " .. ("%q"):format((type(content) == "string" and content or ""):sub(1, 40))
  result.details = { finish = response.finish.raw, usage = response.usage, tokens = response.tokens ~= nil }
  return result
end

--- Is that failure about tools? Ours says so; else the words of the servers.
local function about_tools(text)
  local lower = text:lower()
  if lower:find("enable-auto-tool-choice", 1, true) or lower:find("tool-call-parser", 1, true) then return true end
  if lower:find("tool choice", 1, true) and (lower:find("requires", 1, true) or lower:find("not support", 1, true)) then
    return true
  end
  return lower:find("tool", 1, true) ~= nil
    and (lower:find("400", 1, true) or lower:find("bad request", 1, true) or lower:find("support", 1, true)) ~= nil
end

--- Offers a tool. The server has to accept the request; whether the model calls it is only reported.
---@async
---@param model agentbox.Model
---@return agentbox.Probe
function M.tools(model)
  local result = result_of(model, "tools")
  local prompt = "Use the add tool to add 2 and 3."
  local response, problem = ask(model, prompt, 128, { tools = { ADD }, tool_choice = "auto" })
  if not response then
    result.message = problem.msg
    local unreachable = problem.code == "network" or problem.code == "timeout"
    result.hint = unreachable and not about_tools(problem.msg) and SERVER_HINT or TOOLS_HINT
    return result
  end
  local names = {}
  for i, call in ipairs(response.message.tool_calls or {}) do names[i] = call["function"].name end
  result.ok = true
  result.message = #names > 0 and "called " .. table.concat(names, ", ") or "accepted; the model did not call the tool"
  result.details = { finish = response.finish.raw, tool_calls = names, usage = response.usage }
  return result
end

--- Both probes, the chat probe first.
---@async
---@param model agentbox.Model
---@param opts? { skip_chat?: boolean }
---@return agentbox.Probe[]
function M.run(model, opts)
  local results = {}
  if not (opts and opts.skip_chat) then results[1] = M.chat(model) end
  results[#results + 1] = M.tools(model)
  return results
end

--- One or two lines for a terminal.
---@param result agentbox.Probe
---@return string
function M.text(result)
  local line = ("  [%s] %s: %s"):format(result.ok and "ok" or "FAIL", result.kind, (result.message:gsub("%s+", " ")))
  if result.ok or not result.hint then return line end
  return line .. "\n      hint: " .. result.hint:gsub("%s+", " ")
end

return M

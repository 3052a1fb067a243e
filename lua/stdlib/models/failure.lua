--- What a failed call to a model server was: the error, and whether another try makes sense.
local err = require "agentbox.err"
local json = require "agentbox.json"
local retry = require "agentbox.models.retry"
local secret = require "agentbox.secret"
local text = require "agentbox.text"

local M = {}

local SNIPPET = 500

-- Ways in which servers say that the conversation no longer fits. Lower case, plain text.
local OVERFLOW = {
  "maximum context length", "context_length_exceeded", "context length exceeded", "exceed_context_size",
  "exceeds the available context size", "longer than the model's context length", "maximum model length",
  "max_model_len", "exceeds the model's maximum", "prompt is too long", "input is too long",
  "input length and `max_tokens` exceed context limit", "reduce the length of the messages",
  "exceeds the maximum number of tokens", "exceeds context window", "context window exceeds", "context window of",
  "exceeds the context window", "too many tokens in the prompt", "request exceeds the context",
  "`inputs` tokens + `max_new_tokens` must be", "larger than the maximum context",
}

--- Does that text say that the context window is full?
---@param body string
---@return boolean
function M.is_overflow(body)
  body = body:lower()
  for _, phrase in ipairs(OVERFLOW) do
    if body:find(phrase, 1, true) then return true end
  end
  return false
end

--- The beginning of a body, fit for an error: valid text, without secrets.
---@param body string
---@return string
function M.snippet(body)
  return (text.cut(secret.redact(text.scrub(body)):gsub("%s+", " "), SNIPPET))
end

-- What the server says in words: {"error":{"message":...}}, {"error":"..."}, {"message":...}, {"detail":...}.
local function said(body)
  local decoded = json.decode(body, { repair = true })
  if type(decoded) ~= "table" then return nil end
  local inner = decoded.error
  if type(inner) == "table" then inner = inner.message end
  if type(inner) ~= "string" then inner = decoded.message end
  if type(inner) ~= "string" then inner = decoded.detail end
  return type(inner) == "string" and inner or nil
end

local function hint(status, words)
  local lower = words:lower()
  if status == 401 or status == 403 then return "check the API key" end
  if status == 404 then return "check base_url (it usually ends in /v1) and the model's name" end
  local choice = lower:find("auto", 1, true) and lower:find("tool choice", 1, true)
  if lower:find("enable-auto-tool-choice", 1, true) or lower:find("tool-call-parser", 1, true) or choice then
    return "the server was started without tool calling (vLLM: --enable-auto-tool-choice --tool-call-parser NAME)"
  end
end

--- The error for a response that is not a success.
---@param status integer
---@param body string
---@param after_s number?
---@return agentbox.Err err
---@return boolean again
function M.of_status(status, body, after_s)
  local words = said(body) or ""
  local snippet = M.snippet(body)
  local extra = { http_status = status, body = snippet, retry_after_s = after_s, hint = hint(status, words) }
  if status ~= 429 and (status == 400 or status == 413 or status == 422 or status >= 500) and M.is_overflow(body) then
    return err.new("context", "context window exceeded: " .. M.snippet(words ~= "" and words or body), extra), false
  end
  local msg = ("HTTP %d: %s"):format(status, words ~= "" and M.snippet(words) or snippet)
  if extra.hint then msg = msg .. " (" .. extra.hint .. ")" end
  return err.new("model", msg, extra), retry.status(status)
end

--- The error for a body of a successful response that is of no use: HTML, half JSON, no choices. Tried again: most
--- come from a proxy or a server that is just going down.
---@param why string
---@param body string
---@param status integer
---@return agentbox.Err err
---@return boolean again
function M.of_body(why, body, status)
  local kind = body:match "^%s*<" and "the reply is HTML" or why
  local extra = { http_status = status, body = M.snippet(body) }
  return err.new("model", ("unusable reply: %s: %s"):format(kind, M.snippet(body):sub(1, 120)), extra), true
end

--- The error that a server put into a successful response or into a stream: {"error": ...}.
---@param reply table
---@param body string
---@return agentbox.Err? err
---@return boolean? again
function M.of_reply(reply, body)
  local inner = reply.error
  if inner == nil or inner == json.null or type(reply.choices) == "table" and #reply.choices > 0 then return nil end
  local status = type(inner) == "table" and math.tointeger(tonumber(inner.code) or tonumber(inner.status)) or 500
  if status < 400 or status > 599 then status = 500 end
  return M.of_status(status, body)
end

--- A failure below HTTP: is another try worth it?
---@param e agentbox.Err
---@return boolean
function M.transport_again(e)
  if e.code == "network" then return e.phase ~= "tls" end
  return e.code == "timeout" or e.code == "protocol"
end

return M

--- The steps of verifiers' older rows (version 0): for each call its prompt, message for message, what the model said,
--- and the ids of both.
local choice = require "agentbox.formats._choice"
local columns = require "agentbox.record.columns"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"
local tokens = require "agentbox.record.tokens"

local M = {}

local put_steps = sys.rows({ "prompt", "completion", "response", "tokens", "reward", "advantage", "is_truncated",
  "trajectory_id", "extras" }, { prompt = true, completion = true, response = true, tokens = true, extras = true }, true)
local put_response = sys.row({ "id", "created", "model", "usage", "message" }, { usage = true, message = true }, true)
local put_usage = sys.row { "prompt_tokens", "reasoning_tokens", "completion_tokens", "total_tokens" }
local put_message = sys.row({ "role", "content", "reasoning_content", "finish_reason", "is_truncated" },
  { content = true }, true)
local put_calls = sys.rows({ "id", "name", "arguments" }, { id = true, name = true, arguments = true })
local put_planes = sys.row({ "prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "completion_logprobs",
  "overlong_prompt", "is_truncated", "routed_experts" }, {
  prompt_ids = true, prompt_mask = true, completion_ids = true, completion_mask = true, completion_logprobs = true,
}, true)

local used = sys.pick { "prompt", "completion" }
local calls_of = sys.split { "&id", "&function.name", "&function.arguments" }

--- The messages of nodes as a JSON list.
---@param t agentbox.Traj
---@param path integer[]     # their places
---@param from? integer
---@param to? integer
---@return agentbox.JsonRaw
function M.messages(t, path, from, to)
  return sys.later(sys.list, from or 1, to or #path, sys.cells(t.columns, "m", nil, path))
end

local function same(text, n) return "[" .. (text .. ","):rep(n):sub(1, -2) .. "]" end

local function planes_of(t, i, evidence, memo)
  local call = evidence[i]
  if not tokens.is_rl_grade(call) then return "null" end
  local prompt, n = tokens.prompt_text(evidence, call, memo)
  local given = call.tokens
  return sys.later(put_planes, sys.later(sys.joined, { prompt }, "", "[", "]"), same("0", n), tokens.text(given.out),
    same("1", given.n_out), tokens.text(given.lp), false, t.call_columns.norm[i] == "length")
end

local FINISHES = { stop = "stop", length = "length", tool_calls = "tool_calls" }

-- The response as version 0 knew it: calls are flat, and what the server said of its end is on the message.
local function response_of(t, i, at)
  local calls, of = t.call_columns, t.message_columns
  local times, prompt, completion = json.decode(calls.t[i] or "[]"), nil, nil
  if calls.usage[i] then prompt, completion = used(calls.usage[i]) end
  local norm, content = calls.norm[i], of.content[at]
  local thought = of.thought[at] or of.reasoning[at]
  local message = put_message("assistant", content or "null", thought, norm and FINISHES[norm], norm == "length")
  local n, ids, names, arguments = calls_of(of.calls[at] or "")
  if n then
    message = ('%s,"tool_calls":%s}'):format(message:sub(1, -2), put_calls(1, n, ids, names, arguments))
  end
  return sys.later(put_response, calls.response_id[i] or "", math.floor(times[3] or 0), calls.model[i] or "",
    prompt and put_usage(prompt, 0, completion, prompt + (completion or 0)) or nil, message)
end

--- The steps of a rollout as JSON text.
---@param t agentbox.Traj
---@return agentbox.JsonRaw
function M.of(t)
  local n, memo, calls, evidence = 0, {}, t.call_columns, choice.evidence(t)
  local prompt, completion, response, planes, cut = {}, {}, {}, {}, {}
  for i = 1, calls.n do
    local at = calls.out[i] and calls.trainable[i] and calls.out[i] + 1
    if at and t.columns.m_kind[at] then
      n = n + 1
      prompt[n], completion[n] = M.messages(t, columns.path(t.columns, calls.leaf[i])), M.messages(t, { at })
      response[n], planes[n], cut[n] = response_of(t, i, at), planes_of(t, i, evidence, memo), calls.norm[i] == "length"
    end
  end
  return sys.later(put_steps, 1, n, prompt, completion, response, planes, nil, nil, cut, t.id, "{}")
end

return M

--- Hand-made rollouts for the tests of records and exports: a model that answers from a list, as a server would.
local json = require "agentbox.json"
local parse = require "agentbox.record.parse"
local record = require "agentbox.record"
local traj = require "agentbox.traj"

local M = {}

M.TOOLS = json.array {
  json.decode [[{"type":"function","function":{"name":"sh","description":"Run.","parameters":{"type":"object",
    "properties":{"cmd":{"type":"string"},"body":{"type":"string"},"out":{"type":"integer"}},"required":["cmd"]}}}]],
}

local function object(...)
  local out, given = json.object(), { ... }
  for i = 1, #given, 2 do out[given[i]] = given[i + 1] end
  return out
end

M.object = object

function M.tool_call(id, cmd)
  return object("id", id, "type", "function",
    "function", object("name", "sh", "arguments", json.encode(object("cmd", cmd))))
end

-- The bodies of one chat completion, as a client would send and receive them.
local function bodies(self, message, reply)
  local request = object("model", self.model, "messages", json.array(table.move(self.sent, 1, #self.sent, 1, {})),
    "tools", M.TOOLS, "temperature", 1.0, "max_tokens", 64)
  local choice = object("index", 0, "message", message, "logprobs", json.null,
    "finish_reason", reply.finish or (message.tool_calls and "tool_calls" or "stop"))
  local response = object("id", ("chatcmpl-%s-%d"):format(self.id, self.n), "object", "chat.completion",
    "created", 1764444000, "model", self.model, "choices", json.array { choice })
  if reply.usage then
    local u = reply.usage
    response.usage = object("prompt_tokens", u.prompt, "completion_tokens", u.completion, "total_tokens", u.prompt + u.completion)
  end
  if reply.tokens then
    choice.token_ids = json.array(reply.tokens.out)
    response.prompt_token_ids = json.array(reply.tokens.prompt)
    local content = json.array()
    for i, lp in ipairs(reply.tokens.lp) do
      content[i] = object("token", "token_id:" .. reply.tokens.out[i], "logprob", lp, "bytes", json.null, "top_logprobs", json.array())
    end
    choice.logprobs = object("content", content, "refusal", json.null)
  end
  return json.encode(request), json.encode(response), response.id
end

local function planes(tokens)
  if not tokens then return nil end
  local out = { src = tokens.src or "engine" }
  for _, name in ipairs { "prompt", "out", "lp" } do
    if tokens[name] then out[name] = assert(json.raw(json.encode(json.array(tokens[name])))) end
  end
  return out
end

local Rollout = {}
Rollout.__index = Rollout

--- Starts a rollout with a system and a user message.
function M.new(opts)
  opts = opts or {}
  local self = setmetatable({ id = opts.id or "r1-0", model = opts.model or "fixer@12", sent = {}, n = 0, at = 1764444000.0 }, Rollout)
  self.rec = record.new {
    run_id = opts.run_id or "5f0c1a2b3c4d", id = self.id, attempt = opts.attempt, group = opts.group,
    task = { task_id = opts.task_id or "t-17", description = "Make run.sh exit 0.", hash = "sha256:" .. ("5f"):rep(32),
             metadata = { difficulty = "easy", tags = { "a", "b" } } },
    scratch = opts.scratch, agent = { name = "tool_loop" }, model = { name = self.model, kind = "openai" }, tools = M.TOOLS,
    tool_mode = "structured",
    seed = 7, started = self.at,
  }
  self:say(object("role", "system", "content", opts.system or "You fix shell scripts."), "prompt")
  self:say(object("role", "user", "content", opts.user or "Make run.sh exit 0."), "prompt")
  return self
end

function Rollout:say(message, origin, call)
  self.leaf = self.rec:message(message, { origin = origin, call = call })
  self.sent[#self.sent + 1] = message
  return self.leaf
end

--- One turn: the model says `message`; returns the response's call index.
function Rollout:reply(message, reply)
  reply = reply or {}
  local raw_request, raw_response, id = bodies(self, message, reply)
  self.n, self.at = self.n + 1, self.at + 1
  local call = self.rec:call {
    leaf = self.leaf,
    request = { messages = self.sent, tools = M.TOOLS, sampling = { temperature = 1.0, max_tokens = 64 }, session = "s-1" },
    response = {
      message = message, finish = { raw = reply.finish or "stop", norm = reply.norm or "stop" }, usage = reply.usage,
      tokens = planes(reply.tokens), raw_request = not reply.bare and raw_request or nil,
      raw_response = not reply.bare and (reply.raw_response or raw_response) or nil, response_id = id, served_model = self.model,
      tries = 1, times = { queued = self.at, first = self.at + 0.2, done = self.at + 0.5 },
    },
  }
  self:say(message, "sampled", call)
  return call
end

--- Answers the tool calls of the last turn, in order.
function Rollout:tools(calls, results)
  for i, call in ipairs(calls) do
    local result = results[i]
    self.at = self.at + 0.25
    local node = self:say(object("role", "tool", "tool_call_id", call.id, "content", result.text), "tool")
    self.rec:tool_run {
      node = node, slot = i - 1, call_id = call.id, name = call["function"].name, t = { self.at, self.at + 0.125 },
      exit = result.exit, is_error = (result.exit or 0) ~= 0,
    }
  end
end

local DEFAULTS = {
  status = "completed", final_status = "success", stop = { reason = "final_answer" },
  reward = { scored = true, value = 1.0, outcome = 1.0, components = { tests = 1.0 }, scorer = { name = "pytest" } },
  verify = { success = true, exit_code = 0, stdout = "2 passed\n", stderr = "", duration_s = 0.5, command = "pytest -q" },
  timing = { boot_ms = 900, seed_ms = 100, score_ms = 500, total_ms = 3200 }, sandbox = { kind = "native", id = "sb-1" },
}

function Rollout:finish(result)
  local out = {}
  for key, value in pairs(DEFAULTS) do out[key] = value end
  for key, value in pairs(result or {}) do out[key] = value end
  return self.rec:finish(out)
end

--- A rollout of calls with the given planes, each answered by a tool but the last.
function M.of_calls(calls, opts, result)
  local ro = M.new(opts)
  for i, tokens in ipairs(calls) do
    local call = M.tool_call("c" .. i, "true")
    local last = i == #calls
    local message = object("role", "assistant", "content", last and "done" or json.null,
      "tool_calls", not last and json.array { call } or nil)
    ro:reply(message, { tokens = tokens, finish = last and "stop" or "tool_calls", norm = last and "stop" or "tool_calls" })
    if not last then ro:tools({ call }, { { text = "ok" } }) end
  end
  return ro:finish(result)
end

--- Planes of calls as servers give them: most prompts go on from the call before, some drift inside its output, some
--- begin anew. Sampled ids tell their call and their place (1000 * call + place), log-probs too (-(call + place / 10)).
function M.random_calls(random)
  local calls, held = {}, {}
  for i = 1, random:int(1, 6) do
    local prompt = table.move(held, 1, #held, 1, {})
    local kind = random:int(1, 3)
    if kind == 1 and #prompt > 1 then prompt[random:int(1, #prompt)] = 500 + i end
    if kind == 2 and #prompt > 2 then prompt = table.move(prompt, 1, random:int(1, #prompt - 1), 1, {}) end
    for _ = 1, random:int(1, 3) do prompt[#prompt + 1] = random:int(1, 99) end
    local out, lp = {}, {}
    for j = 1, random:int(1, 4) do out[j], lp[j] = 1000 * i + j, -(i + j / 10) end
    calls[i] = { prompt = prompt, out = out, lp = lp }
    held = table.move(out, 1, #out, #prompt + 1, table.move(prompt, 1, #prompt, 1, {}))
  end
  return calls
end

--- A whole rollout of two turns: look, then answer. `with.tokens` adds engine tokens to both calls.
function M.sample(opts, with)
  local ro, call = M.new(opts), M.tool_call("c1", "cat run.sh")
  with = with or {}
  ro:reply(object("role", "assistant", "content", json.null, "tool_calls", json.array { call }),
    { usage = with.usage ~= false and { prompt = 40, completion = 9 } or nil, finish = "tool_calls", norm = "tool_calls",
      tokens = with.tokens and { prompt = { 11, 12, 13 }, out = { 21, 22, 23 }, lp = { -0.4, -0.02, -0.001 } }, bare = with.bare })
  ro:tools({ call }, { { text = with.output or "exit 3\n", exit = 3 } })
  ro:reply(object("role", "assistant", "content", with.answer or "Fixed.", "reasoning_content", "look first"),
    { usage = with.usage ~= false and { prompt = 60, completion = 4 } or nil,
      tokens = with.tokens and { prompt = { 11, 12, 13, 21, 22, 23, 31, 32 }, out = { 41, 42 }, lp = { -0.2, -1e-05 } }, bare = with.bare })
  return ro
end

--- The trajectory after a round trip through its text.
function M.reread(t)
  local line = assert(parse.parse(json.encode(t.line)))
  return traj.new(line, { blobs = t._from.blobs })
end

return M

-- Usage: agentbox script llama_cpp.lua ADDRESS. What a real engine makes of our requests, and we of its replies.
local json = require "agentbox.json"
local model = require "agentbox.model"
local probe = require "agentbox.probe"
local test = require "agentbox.test"

local base_url = arg[1] .. "/v1"

local function open(opts)
  local all = { model = "smollm2", base_url = base_url, timeout_s = 240, max_tries = 1, proxy = false }
  for key, value in pairs(opts or {}) do all[key] = value end
  return model.open(all)
end

local function user(text)
  return { role = "user", content = text }
end

local function say(what)
  io.stdout:write("ok - ", what, "\n")
end

-- Chat, with usage.
local request = { messages = { user "Say hello." }, sampling = { max_tokens = 6, temperature = 0 }, session = "p" }
local first = assert(open():complete(request))
test.ok(#first.message.content > 0)
test.eq(first.usage.completion, 6)
test.ok(first.usage.prompt > 5 and first.usage.total == first.usage.prompt + 6)
test.eq(first.finish.norm, "length")
say(("chat: %q, %d + %d tokens"):format(first.message.content, first.usage.prompt, first.usage.completion))

-- Streaming gives the same text and the same counts.
local streamed = assert(open { stream = true }:complete(request))
test.eq(streamed.message.content, first.message.content)
test.eq(streamed.usage.completion, 6)
test.eq(streamed.finish, first.finish)
say "stream: the same reply, with usage"

-- Token ids and log-probs, whole and streamed.
for _, stream in ipairs { false, true } do
  local with_tokens = assert(open { stream = stream, logprobs = true, top_logprobs = 2 }:complete(request))
  local tokens = with_tokens.tokens
  test.eq(#tokens.out:decode(), 6)
  test.eq(#tokens.lp:decode(), 6)
  for _, lp in ipairs(tokens.lp:decode()) do test.ok(lp <= 0) end
end
say "tokens: six ids and six log-probs, whole and streamed"

-- A conversation with tool calls, as an agent sends it.
local tools = { {
  type = "function",
  ["function"] = {
    name = "add", description = "Add two integers.",
    parameters = {
      type = "object", required = { "a", "b" },
      properties = { a = { type = "integer" }, b = { type = "integer" } },
    },
  },
}, {
  type = "function", ["function"] = { name = "now", parameters = { type = "object", properties = json.object() } },
} }
local call = { id = "call_1", type = "function", ["function"] = { name = "add", arguments = '{"a":2,"b":3}' } }
local reply = assert(open():complete {
  messages = {
    user "Add 2 and 3.", { role = "assistant", content = json.null, tool_calls = { call } },
    { role = "tool", tool_call_id = "call_1", name = "add", content = "5" },
  },
  tools = tools, sampling = { max_tokens = 6, temperature = 0 },
})
test.ok(reply.usage.prompt > 50)
say(("tools: accepted, %d prompt tokens, then %q"):format(reply.usage.prompt, reply.message.content or ""))

-- The context window of 1024 tokens overflows.
local long = { messages = { user(("word "):rep(3000)) }, sampling = { max_tokens = 4 } }
local e = test.fails("context", open():complete(long))
say("overflow: " .. e.msg:sub(1, 90))

-- doctor's probes.
for _, result in ipairs(probe.run(open { sampling = { max_tokens = 8 } })) do
  test.ok(result.ok, result.message)
  say(probe.text(result):match "^%s*(.-)%s*$")
end

-- Models without a server, the wire form of messages, the arithmetic of retries, the probes.
local async = require "agentbox.async"
local json = require "agentbox.json"
local model = require "agentbox.model"
local probe = require "agentbox".probe
local reply = require "agentbox.models.reply"
local retry = require "agentbox.models.retry"
local test = require "agentbox.test"
local wire = require "agentbox.models.wire"

local fakellm = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/fakellm.lua")

local function user(text)
  return { role = "user", content = text }
end

local M = {}

-- ---------------------------------------------------------------- scripted

local CALL = { tool_calls = { { name = "run_command", arguments = { command = "ls" } } } }

function M.test_a_script_is_walked_by_each_session_on_its_own()
  local m = model.scripted { "one", CALL, "three" }
  for _, session in ipairs { "a", "b" } do
    test.eq(assert(m:complete { messages = { user "x" }, session = session }).message.content, "one")
  end
  local second = assert(m:complete { messages = { user "x" }, session = "a" })
  test.eq(second.finish.norm, "tool_calls")
  test.eq(second.message.tool_calls[1]["function"].name, "run_command")
  test.eq(json.decode(second.message.tool_calls[1]["function"].arguments).command, "ls")
  test.ok(second.message.tool_calls[1].id ~= "")
  test.eq(assert(m:complete { messages = { user "x" }, session = "a" }).message.content, "three")
  test.contains(assert(m:complete { messages = { user "x" }, session = "a" }).message.content, "no more turns")
end

function M.test_a_fork_goes_on_where_its_history_ends()
  local m = model.scripted { "one", "two", "three" }
  local history = { user "x", { role = "assistant", content = "one" }, user "y" }
  test.eq(assert(m:complete { messages = history, session = "fork" }).message.content, "two")
  test.eq(assert(m:complete { messages = history, session = "fork" }).message.content, "three")
end

function M.test_turns_may_be_functions_and_may_fail()
  local m = model.scripted {
    function(request, n) return request.messages[1].content .. n end,
    function() return nil, "the cable was pulled" end,
    last = "the end",
  }
  local request = { messages = { user "turn " }, session = "f" }
  test.eq(assert(m:complete(request)).message.content, "turn 1")
  test.contains(test.fails("model", m:complete(request)).msg, "the cable was pulled")
  test.eq(assert(m:complete(request)).message.content, "the end")
  test.raises("unknown option 'turn'", model.scripted, { turn = "x" })
end

function M.test_many_rollouts_share_one_script()
  local m = model.scripted { { content = "a", delay_s = 0.001 }, { content = "b", delay_s = 0.001 }, "c" }
  local seen = {}
  async.scope(function(scope)
    for i = 1, 50 do
      scope:spawn(function()
        local said = {}
        for n = 1, 3 do said[n] = assert(m:complete { messages = { user "x" }, session = "s" .. i }).message.content end
        seen[i] = table.concat(said)
      end)
    end
  end)
  for i = 1, 50 do test.eq(seen[i], "abc") end
end

function M.test_the_raw_texts_are_those_of_a_server()
  local response = assert(model.scripted { CALL }:complete { messages = { user "x" }, session = "r" })
  local raw = json.decode(response.raw_response)
  test.eq(raw.object, "chat.completion")
  test.eq(raw.choices[1].message.content, json.null)
  test.eq(raw.choices[1].finish_reason, "tool_calls")
  test.eq(json.decode(response.raw_request).messages[1].content, "x")
  test.eq(response.usage, nil)
end

-- ---------------------------------------------------------------- functions, resolve

function M.test_a_function_is_a_model()
  local m = model.fn(function(request) return { content = "you said " .. request.messages[1].content } end)
  test.eq(assert(m:complete { messages = { user "x" } }).message.content, "you said x")
  test.eq(m:describe().kind, "fn")
  test.fails("model", model.fn(function() return nil, "no" end):complete { messages = {} })
  test.raises("a turn must be a text or a message", function()
    return model.fn(function() return 7 end):complete { messages = {} }
  end)
end

function M.test_resolve()
  local m = model.fn(function() return "x" end)
  test.eq(model.resolve(m), m)
  test.eq(model.resolve(function() return "x" end):describe().kind, "fn")
  test.eq(model.resolve { "a", "b" }:describe().turns, 2)
  test.eq(model.resolve("gpt").name, "gpt")
  test.fails("config", model.resolve(nil))
end

-- ---------------------------------------------------------------- replay

-- What replay needs of a trajectory: the calls and their bodies.
local function recorded(bodies)
  local traj = { id = "t1" }
  function traj.calls()
    local i = 0
    return function()
      i = i + 1
      return bodies[i] and { i = i - 1, response = {} } or nil
    end
  end
  function traj.body(_, call, which) return bodies[call.i + 1][which] end
  return traj
end

local function record(m, requests)
  local bodies = {}
  for i, request in ipairs(requests) do
    local response = assert(m:complete(request))
    bodies[i] = { request = response.raw_request, response = response.raw_response }
  end
  return recorded(bodies)
end

function M.test_a_replay_answers_as_recorded()
  local first = { messages = { user "x" }, session = "r" }
  local second = { messages = { user "x", { role = "assistant", content = "one" }, user "y" }, session = "r" }
  local m = assert(model.replay { traj = record(model.scripted { "one", "two" }, { first, second }) })
  test.eq(assert(m:complete(first)).message.content, "one")
  test.eq(assert(m:complete(second)).message.content, "two")
  test.contains(test.fails("model", m:complete(second)).msg, "only 2 calls")
  first.session = "again"
  test.eq(assert(m:complete(first)).message.content, "one")
end

function M.test_a_replay_notices_another_conversation()
  local traj = record(model.scripted { "one" }, { { messages = { user "x" } } })
  local e = test.fails("model", assert(model.replay { traj = traj }):complete { messages = { user "z" } })
  test.contains(e.msg, "message 1 differs")
  local loose = assert(model.replay { traj = traj, strict = false })
  test.eq(assert(loose:complete { messages = { user "z" } }).message.content, "one")
end

-- ---------------------------------------------------------------- the wire form of messages

local function one_text(message)
  return wire.messages_text({ message }):match "^%[(.*)%]$"
end

function M.test_messages_are_built_from_a_list()
  local text = one_text {
    role = "assistant", content = json.null, timestamp = 5, refusal = json.null, reasoning = "r",
    tool_calls = { { id = "1", type = "function", index = 0, ["function"] = { name = "t", arguments = { a = 1 } } } },
  }
  local sent = json.decode(text)
  test.eq(json.keys(sent), { "role", "reasoning", "tool_calls" })
  test.eq(sent.tool_calls[1]["function"].arguments, '{"a":1}')
  test.eq(sent.tool_calls[1].index, nil)
  test.eq(json.decode(one_text { role = "assistant", content = json.null }).content, "")
end

function M.test_a_clean_message_is_sent_as_it_stands()
  local message = json.decode '{"content":"é","role":"user"}'
  test.eq(one_text(message), json.encode(message))
end

-- ---------------------------------------------------------------- token evidence

local function evidence(choice)
  local text = json.encode { choices = { choice }, prompt_token_ids = json.array { 1, 2 } }
  return assert(reply.response(reply.decode(text), { messages = {} })).tokens
end

function M.test_logprobs_are_a_plane_with_or_without_alternatives()
  local message = { content = "ab" }
  local other = { token = "z", logprob = -9.5 }
  local got = evidence { message = message, token_ids = json.array { 7, 8 }, logprobs = { content = {
    { token = '"logprob":1', logprob = -0.5, top_logprobs = { other, other } },
    { top_logprobs = { other }, token = "b", logprob = -1e-05 },
  } } }
  test.eq({ got.src, got.lp:text() }, { "engine", "[-0.5,-1e-05]" })
  test.eq({ got.out:text(), got.prompt:text() }, { "[7,8]", "[1,2]" })
end

function M.test_token_ids_written_as_text()
  local got = evidence { message = { content = "ab" }, logprobs = { content = {
    { token = "token_id:17", logprob = -0.5 }, { token = "token_id:4", logprob = 0.0 },
  } } }
  test.eq({ got.src, got.out:text() }, { "token_id_strings", "[17,4]" })
  local plain = evidence { message = { content = "ab" }, logprobs = { content = { { token = "a", logprob = -0.5 } } } }
  test.eq({ plain.src, plain.out }, { "none", nil })
  test.eq(evidence { message = { content = "ab" }, logprobs = json.null }, nil)
end

-- ---------------------------------------------------------------- retries

function M.test_statuses_that_pass()
  for status, again in pairs {
    [408] = true, [409] = true, [429] = true, [500] = true, [503] = true, [529] = true,
    [400] = false, [401] = false, [404] = false, [422] = false, [501] = false,
  } do test.eq(retry.status(status), again, status) end
end

function M.test_waits_grow_to_their_cap_and_never_undercut_the_server()
  local opts = { base_s = 1, cap_s = 8 }
  for n = 1, 20 do
    for _ = 1, 50 do
      local wait = retry.wait_s(n, opts)
      test.ok(wait >= 0 and wait <= math.min(8, 2 ^ (n - 1)))
      test.ok(retry.wait_s(n, opts, 5) >= 5)
    end
  end
end

function M.test_retry_after_is_read()
  local function date(text) return text == "date" and 1010 or nil end
  test.eq(retry.after("7", 1000, date), 7)
  test.eq(retry.after("1.5", 1000, date), 1.5)
  test.eq(retry.after("date", 1000, date), 10)
  test.eq(retry.after("date", 2000, date), 0)
  test.eq(retry.after("soon", 1000, date), nil)
  test.eq(retry.after(nil, 1000, date), nil)
end

-- ---------------------------------------------------------------- probes

function M.test_probes_of_a_server_that_works()
  local fake = fakellm.script { steps = {
    "pong", { tool_calls = { { name = "add", arguments = { a = 2, b = 3 } } } },
  }, strict = true }
  local results = probe.run(model.open { model = "fake", base_url = fake.url, proxy = false })
  test.eq({ results[1].ok, results[1].kind, results[2].ok, results[2].kind }, { true, "chat", true, "tools" })
  test.contains(results[1].message, "pong")
  test.eq(results[2].details.tool_calls, { "add" })
  test.contains(probe.text(results[2]), "[ok] tools")
end

function M.test_probes_of_a_server_without_tools()
  local words = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
  local fake = fakellm.script { "pong", { status = 400, error = words } }
  local results = probe.run(model.open { model = "fake", base_url = fake.url, proxy = false })
  test.eq({ results[1].ok, results[2].ok }, { true, false })
  test.contains(results[2].hint, "--tool-call-parser")
  test.contains(probe.text(results[2]), "hint: ")
end

function M.test_probes_of_no_server()
  local m = model.open { model = "fake", base_url = "http://127.0.0.1:1/v1", max_tries = 1, proxy = false }
  local results = probe.run(m)
  test.eq({ results[1].ok, results[2].ok }, { false, false })
  test.contains(results[1].hint, "base_url")
  test.contains(results[2].hint, "base_url")
end

return M

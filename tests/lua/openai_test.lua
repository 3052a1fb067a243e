-- The client of chat completions servers against the scripted one: dialect, retries, errors, streams, tokens.
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local json = require "agentbox.json"
local model = require "agentbox.model"
local test = require "agentbox.test"

local fakellm = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/fakellm.lua")

local function open(fake, opts)
  local all = { model = "fake", base_url = fake.url, api_key = "sk-test-123456", retry_base_s = 0.002, proxy = false }
  for key, value in pairs(opts or {}) do all[key] = value end
  return model.open(all)
end

local function ask(text)
  return { messages = { { role = "user", content = text or "hi" } }, session = "s1" }
end

local TOOLS = { {
  type = "function",
  ["function"] = {
    name = "run_command", description = "Run.",
    parameters = { type = "object", properties = { command = { type = "string" } }, required = { "command" } },
  },
} }

-- Runs a conversation the way an agent does: every reply and an answer to each of its calls go into the history.
local function converse(m, request, turns)
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

local M = {}

function M.test_a_plain_reply()
  local fake = fakellm.script { steps = { "hello" }, strict = true }
  local response = assert(open(fake):complete(ask()))
  test.eq(response.message.content, "hello")
  test.eq(response.finish, { raw = "stop", norm = "stop" })
  test.eq(response.usage, { prompt = 11, completion = 7, total = 18 })
  test.eq(response.tries, 1)
  test.eq(response.tokens, nil)
  test.eq(json.decode(response.raw_response).choices[1].message.content, "hello")
  test.eq(json.decode(response.raw_request).model, "fake")
  test.ok(response.times.queued <= response.times.first and response.times.first <= response.times.done)
  test.eq(response.served_model, "fake")
end

function M.test_a_strict_server_accepts_five_turns_with_tools()
  local call = { tool_calls = { { name = "run_command", arguments = { command = "ls" } } } }
  local fake = fakellm.script { steps = { call, call, call, call, "done" }, strict = true }
  local request = ask()
  request.tools = TOOLS
  request.messages[1].private = json.null -- never sent
  local last = converse(open(fake, { sampling = { temperature = 0, max_tokens = 50 } }), request, 9)
  test.eq(last.message.content, "done")
  local log = fake.log()
  test.eq(#log, 5)
  test.eq(#log[5].body.messages, 9)
  test.eq(log[5].body.tool_choice, "auto")
  test.eq(log[5].body.max_tokens, 50)
end

function M.test_no_tools_no_tool_choice_and_no_empty_properties()
  local fake = fakellm.script { steps = { "a", "b" }, strict = true }
  local request = ask()
  request.tool_choice = "auto"
  assert(open(fake):complete(request))
  request.tools = { {
    type = "function", ["function"] = { name = "now", parameters = { type = "object", properties = json.object() } },
  } }
  assert(open(fake):complete(request))
  local log = fake.log()
  test.eq(log[1].body.tool_choice, nil)
  test.eq(log[2].body.tools[1]["function"].parameters, nil)
end

function M.test_every_turn_of_a_rollout_has_one_session()
  local call = { tool_calls = { { name = "run_command", arguments = {} } } }
  local fake = fakellm.script { steps = { { status = 503 }, call, call, "end" }, shared = true, strict = true }
  converse(open(fake), ask(), 9)
  for _, entry in ipairs(fake.log()) do test.eq(entry.session, "s1") end
  test.eq(#fake.log(), 4)
end

function M.test_a_servers_cookie_comes_back()
  local fake = fakellm.script { { content = "a", cookie = true }, "b" }
  local m = open(fake)
  assert(m:complete(ask()))
  assert(m:complete(ask()))
  test.eq(fake.log()[1].headers.cookie, nil)
  test.eq(fake.log()[2].headers.cookie, "node=7")
end

function M.test_reasoning_goes_back_under_its_own_name()
  for _, name in ipairs { "reasoning_content", "reasoning" } do
    for _, stream in ipairs { false, true } do
      local first = { tool_calls = { { name = "run_command", arguments = {} } }, [name] = "because" }
      local fake = fakellm.script { steps = { first, "end" }, strict = true }
      converse(open(fake, { stream = stream }), ask(), 9)
      test.eq(fake.log()[2].body.messages[2][name], "because")
    end
  end
end

-- ---------------------------------------------------------------- tool calls

function M.test_arguments_given_as_an_object()
  local args = { path = "a", n = 3, ok = true }
  local fake = fakellm.script { steps = {
    { tool_calls = { { name = "t", arguments = args } }, object_arguments = true }, "end",
  }, strict = true }
  local request = ask()
  local m = open(fake)
  local response = assert(m:complete(request))
  local call = response.message.tool_calls[1]
  local got = json.decode(call["function"].arguments)
  test.eq({ got.path, got.n, got.ok }, { "a", 3, true })
  request.messages[2] = response.message
  request.messages[3] = { role = "tool", tool_call_id = call.id, content = "ok" }
  assert(m:complete(request)) -- the strict server wants a text again
end

function M.test_control_characters_in_arguments_are_repaired()
  local raw = '{"command":"echo a\necho b\tc"}'
  local fake = fakellm.script { steps = { { tool_calls = { { name = "t", arguments = raw } } }, "end" }, strict = true }
  local request = ask()
  local m = open(fake)
  local response = assert(m:complete(request))
  local call = response.message.tool_calls[1]
  test.eq(json.decode(call["function"].arguments).command, "echo a\necho b\tc")
  test.eq(call.raw_arguments, raw)
  test.eq(call.parse_error, nil)
  test.eq(response.repaired, true)
  converse(m, request, 1)
  request.messages[2] = response.message
  request.messages[3] = { role = "tool", tool_call_id = call.id, content = "ok" }
  assert(m:complete(request))
end

function M.test_arguments_that_are_no_object()
  local fake = fakellm.script { { tool_calls = {
    { name = "t", arguments = '"ls"' }, { name = "t", arguments = '{"a": ' }, { name = "t", arguments = "" },
    { name = "t", arguments = '"{\\"a\\":1}"' },
  } } }
  local calls = assert(open(fake):complete(ask())).message.tool_calls
  test.contains(calls[1].parse_error, "not a JSON object")
  test.eq(calls[1].raw_arguments, '"ls"')
  test.eq(json.decode(calls[1]["function"].arguments)._raw, '"ls"')
  test.contains(calls[2].parse_error, "not valid JSON")
  test.eq(calls[3].parse_error, nil)
  test.eq(calls[3]["function"].arguments, "{}")
  test.eq(calls[4]["function"].arguments, '{"a":1}')
end

function M.test_ids_are_unique()
  local fake = fakellm.script { steps = {
    { tool_calls = { { name = "a", id = "x" }, { name = "b", id = "x" }, { name = "c", id = "" } } },
    { tool_calls = { { name = "a", id = "x" } } }, "end",
  }, strict = true }
  local request = ask()
  converse(open(fake), request, 9)
  local seen = {}
  for _, message in ipairs(request.messages) do
    for _, call in ipairs(message.tool_calls or {}) do
      test.ok(call.id ~= "" and not seen[call.id], call.id)
      seen[call.id] = true
    end
  end
  test.eq(fake.log()[3].body.messages[2].tool_calls[1].id, "x")
end

-- ---------------------------------------------------------------- odd replies

function M.test_optional_members_may_be_missing_null_or_new()
  local fields = { "id", "object", "created", "model", "usage", "system_fingerprint", "service_tier", "metadata" }
  local values = { json.null, "strange", 3.5, json.array { 1 }, json.object { a = json.object() }, false }
  local steps = {}
  for _, field in ipairs(fields) do
    for _, value in ipairs(values) do
      local message = { annotations = value, audio = value }
      steps[#steps + 1] = { content = "fine", extra = { [field] = value }, message = message }
    end
  end
  steps[#steps + 1] = { content = "fine", message = { tool_calls = json.null, function_call = json.null } }
  steps[#steps + 1] = { content = "fine", message = { tool_calls = json.array {}, refusal = json.null } }
  steps[#steps + 1] = { content = "fine", finish_reason = json.null }
  local fake = fakellm.script { steps = steps }
  local m = open(fake, { max_tries = 1 })
  for i = 1, #steps do
    local response, e = m:complete(ask())
    test.ok(response, ("%d: %s"):format(i, tostring(e)))
    test.eq(response.message.content, "fine")
  end
end

function M.test_a_legacy_function_call_and_content_parts()
  local fake = fakellm.script {
    { message = { function_call = { name = "t", arguments = '{"a":1}' } } },
    { message = { content = { { type = "text", text = "a" }, { type = "text", text = "b" } } } },
  }
  local m = open(fake)
  test.eq(assert(m:complete(ask())).message.tool_calls[1]["function"].name, "t")
  test.eq(assert(m:complete(ask())).message.content, "ab")
end

function M.test_useless_bodies_are_tried_again_and_shown()
  local fake = fakellm.script { { html = true }, { half_json = true }, { body = '{"choices":[]}' }, "fine" }
  test.eq(assert(open(fake):complete(ask())).tries, 4)
  local bad = fakellm.script { { html = true } }
  local e = test.fails("model", open(bad, { max_tries = 2 }):complete(ask()))
  test.contains(e.msg, "HTML")
  test.contains(e.body, "Bad gateway")
  test.eq(e.attempts, 2)
end

function M.test_an_error_inside_a_success()
  local fake = fakellm.script { { body = '{"error":{"message":"overloaded","code":503}}' }, "fine" }
  test.eq(assert(open(fake):complete(ask())).tries, 2)
end

-- ---------------------------------------------------------------- errors and retries

function M.test_passing_troubles_are_survived()
  local fake = fakellm.script { steps = {
    { status = 500 }, { status = 502 }, { status = 503 }, { status = 529 }, { status = 408 }, { status = 409 },
    { reset = true }, { refuse = true }, { content = "x", truncate = 9 }, "fine",
  } }
  local response = assert(open(fake, { max_tries = 20 }):complete(ask()))
  test.eq(response.message.content, "fine")
  -- A connection that was kept and turns out to be closed is replaced below us, without a try of ours.
  test.ok(response.tries == 9 or response.tries == 10, response.tries)
end

function M.test_what_is_wrong_with_the_request_is_not_tried_again()
  for _, status in ipairs { 400, 401, 403, 404, 422, 501 } do
    local fake = fakellm.script { { status = status, error = "no: this is not it" } }
    local e = test.fails("model", open(fake):complete(ask()))
    test.eq(e.http_status, status)
    test.eq(e.attempts, 1)
    test.contains(e.msg, "this is not it")
    test.eq(#fake.log(), 1)
  end
end

function M.test_trouble_without_end_is_an_error_with_its_facts()
  local fake = fakellm.script { { status = 503, error = "the model is loading" } }
  local e = test.fails("model", open(fake, { max_tries = 3 }):complete(ask()))
  test.eq({ e.http_status, e.attempts, e.tries }, { 503, 3, 3 })
  test.contains(e.body, "the model is loading")
  test.contains(e.msg, "after 3 tries")
  test.ok(e.raw_request)
end

function M.test_retry_after_in_seconds_and_as_a_date()
  for after, least in pairs { [0.3] = 0.3, ["date:2"] = 0.9 } do
    local fake = fakellm.script { { status = 429, retry_after = after }, "fine" }
    assert(open(fake):complete(ask()))
    local log = fake.log()
    test.ok(log[2].t - log[1].t >= least)
  end
end

function M.test_a_retry_after_holds_the_other_rollouts_back_too()
  local fake = fakellm.script { steps = { { status = 429, retry_after = 0.3 }, "fine" }, shared = true }
  local m = open(fake)
  async.scope(function(scope)
    scope:spawn(function() assert(m:complete(ask())) end)
    repeat async.sleep(0.002) until m:stats().waiting > 0
    scope:spawn(function() assert(m:complete { messages = ask().messages, session = "other" }) end)
  end)
  local log = fake.log()
  for i = 2, #log do test.ok(log[i].t - log[1].t >= 0.3) end
  test.eq(m:stats().waiting, 0)
end

function M.test_429_for_ever_ends()
  local fake = fakellm.script { { status = 429, retry_after = 3600 } }
  local e = test.fails("model", open(fake, { max_retry_s = 1 }):complete(ask()))
  test.eq(e.http_status, 429)
  test.eq(e.retry_after_s, 3600.0)
end

function M.test_retries_can_be_watched()
  local seen = {}
  local fake = fakellm.script { { status = 500 }, { status = 429 }, "fine" }
  local m = open(fake, { on_retry = function(event) seen[#seen + 1] = event end })
  assert(m:complete(ask()))
  test.eq({ seen[1].http_status, seen[2].http_status }, { 500, 429 })
  test.eq({ seen[1].attempt, seen[2].attempt, seen[1].session }, { 1, 2, "s1" })
  local stats = m:stats()
  test.eq({ stats.calls, stats.tries, stats.retries, stats.waiting, stats.failures }, { 1, 3, 2, 0, 0 })
end

function M.test_a_cancel_during_back_off_leaves_nothing()
  local fake = fakellm.script { { status = 503 } }
  local m = open(fake, { retry_base_s = 1000, retry_cap_s = 1000, max_retry_s = 1e6 })
  local call = fiber.spawn(function() return m:complete(ask()) end)
  repeat async.sleep(0.002) until m:stats().waiting == 1
  call:cancel()
  call:join(5)
  test.eq({ m:stats().waiting, m:stats().running }, { 0, 0 })
end

function M.test_a_context_overflow_has_its_own_code()
  local texts = {
    "This model's maximum context length is 200 tokens. However, your messages resulted in 300 tokens.",
    "The input (300 tokens) is longer than the model's context length (200 tokens).",
    "the request exceeds the available context size. try increasing the context size",
    "prompt is too long: 300 tokens > 200 maximum",
  }
  for _, text in ipairs(texts) do
    local fake = fakellm.script { { status = 400, error = text } }
    local e = test.fails("context", open(fake):complete(ask()))
    test.eq(e.http_status, 400)
    test.eq(#fake.log(), 1)
  end
  local coded = fakellm.script { { status = 400, error = "too long", code = "context_length_exceeded" } }
  test.fails("context", open(coded):complete(ask()))
end

function M.test_deadlines()
  local fake = fakellm.script { { hang = true } }
  local m = open(fake, { timeout_s = 0.1, max_tries = 2 })
  local e = test.fails("timeout", m:complete(ask()))
  test.eq(e.attempts, 2)
  local request = ask()
  request.timeout_s = 0.1 -- bounds the call with its retries
  e = test.fails("timeout", open(fake):complete(request))
  test.ok(e.attempts < 8)
end

function M.test_another_endpoint_takes_over()
  local fake = fakellm.script { "fine" }
  local m = open(fake, { base_urls = { "http://127.0.0.1:1/v1", fake.url } })
  for i = 1, 4 do
    local response = assert(m:complete { messages = ask().messages, session = "s" .. i })
    test.eq(response.message.content, "fine")
  end
end

-- ---------------------------------------------------------------- streams

function M.test_a_streamed_reply_is_the_same_reply()
  local answer = {
    content = "I will look.", reasoning_content = "hm", tool_calls = {
      { name = "run_command", arguments = { command = "ls -l" }, id = "c1" },
      { name = "run_command", arguments = { command = "pwd" }, id = "c2" },
    },
  }
  local fake = fakellm.script { steps = { answer }, strict = true }
  local whole = assert(open(fake):complete(ask()))
  local request = ask()
  request.session = "s2"
  local streamed = assert(open(fake, { stream = true }):complete(request))
  test.eq(json.encode(streamed.message), json.encode(whole.message))
  test.eq(streamed.usage, whole.usage)
  test.eq(streamed.finish, whole.finish)
  test.eq(json.decode(streamed.raw_response).object, "chat.completion")
end

function M.test_usage_of_a_stream_is_counted_or_unknown_but_not_zero()
  local fake = fakellm.script {
    { content = "a" }, { content = "a", usage = "always" }, { content = "a", usage = json.null },
  }
  local m = open(fake, { stream = true })
  test.eq(assert(m:complete(ask())).usage.total, 18)
  test.eq(assert(m:complete(ask())).usage.total, 18)
  test.eq(assert(m:complete(ask())).usage, nil)
end

function M.test_half_a_stream_is_not_an_answer()
  local fake = fakellm.script { { content = "a long answer indeed", cut_after = 3 }, "fine" }
  local response = assert(open(fake, { stream = true }):complete(ask()))
  test.eq({ response.message.content, response.tries }, { "fine", 2 })
  local cut = fakellm.script { { content = "a long answer indeed", cut_after = 3 } }
  test.fails("network", open(cut, { stream = true, max_tries = 1 }):complete(ask()))
end

function M.test_a_silent_stream_is_given_up()
  local fake = fakellm.script { { content = "a long answer indeed", stall_after = 3 }, "fine" }
  local response = assert(open(fake, { stream = true, idle_timeout_s = 0.1 }):complete(ask()))
  test.eq({ response.message.content, response.tries }, { "fine", 2 })
end

function M.test_a_server_that_does_not_stream()
  local fake = fakellm.script { { body = '{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}' } }
  test.eq(assert(open(fake, { stream = true }):complete(ask())).message.content, "whole")
  local refused = fakellm.script { { status = 429 }, "fine" }
  test.eq(assert(open(refused, { stream = true }):complete(ask())).tries, 2)
end

-- ---------------------------------------------------------------- tokens

function M.test_token_evidence()
  for _, stream in ipairs { false, true } do
    local fake = fakellm.script { { content = "abcdefgh", token_ids = 3, logprobs = 3 } }
    local response = assert(open(fake, { tokens = "require", stream = stream }):complete(ask()))
    test.eq(response.tokens.src, "engine")
    test.eq(response.tokens.out:decode()[1], 100)
    test.eq(response.tokens.lp:decode()[1], -0.25)
    test.eq(response.tokens.lp:decode()[3], -0.25)
    test.eq(json.type(response.logprobs), "raw")
    local body = fake.log()[1].body
    test.eq({ body.return_token_ids, body.logprobs }, { true, true })
  end
  local without = fakellm.script { "a" }
  test.contains(test.fails("model", open(without, { tokens = "require" }):complete(ask())).msg, "token ids")
end

-- ---------------------------------------------------------------- keys, options

function M.test_the_key_is_sent_and_shown_nowhere()
  local key = "sk-very-secret-0001"
  local fake = fakellm.script { { status = 401, error = "Incorrect API key provided: " .. key } }
  local m = open(fake, { api_key = key, extra_body = { note = key }, extra_headers = { ["X-Org"] = key } })
  local e = test.fails("model", m:complete(ask()))
  test.eq(fake.log()[1].headers.authorization, "Bearer " .. key)
  test.eq(fake.log()[1].headers["x-org"], key)
  for _, value in pairs(e) do
    if type(value) == "string" and value ~= e.raw_request then test.ok(not value:find(key, 1, true), value) end
  end
  test.contains(e.msg, "check the API key")
  test.ok(not json.encode(m:describe()):find(key, 1, true))
  test.ok(json.encode(m:describe()):find("X-Org", 1, true))
end

function M.test_misspelt_options_are_refused()
  test.raises("temprature", model.open, { model = "m", temprature = 1 })
  test.raises("temprature", model.open, { model = "m", sampling = { temprature = 1 } })
  test.raises("model", model.open, {})
  test.raises("base_url", model.open, { model = "m", base_url = "localhost:8000" })
end

function M.test_sampling_of_the_request_wins_and_extra_body_is_last()
  local fake = fakellm.script { "a" }
  local extra = { top_p = 0.5, chat_template_kwargs = { x = true } }
  local m = open(fake, { temperature = 1, top_p = 0.9, extra_body = extra })
  local request = ask()
  request.sampling = { temperature = 0.25, seed = 7 }
  assert(m:complete(request))
  local body = fake.log()[1].body
  test.eq({ body.temperature, body.top_p, body.seed, body.chat_template_kwargs.x }, { 0.25, 0.5, 7, true })
end

function M.test_the_limit_holds_and_queueing_is_not_slowness()
  local fake = fakellm.script { steps = { { content = "a", delay_s = 0.05 } } }
  local m = open(fake, { limit = 2, timeout_s = 0.9, max_tries = 1 })
  async.scope(function(scope)
    for i = 1, 40 do
      scope:spawn(function() assert(m:complete { messages = ask().messages, session = "q" .. i }) end)
    end
  end)
  for _, entry in ipairs(fake.log()) do test.ok(entry.inflight <= 2) end
end

return M

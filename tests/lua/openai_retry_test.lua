-- The client of chat completions servers in trouble: errors, retries, deadlines, streams that end early.
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local json = require "agentbox.json"
local test = require "agentbox.test"

local support = (arg[0]:match "^(.*/)" or "./") .. "../support/"
local client = dofile(support .. "client.lua")
local fakellm = dofile(support .. "fakellm.lua")
local open, ask = client.open, client.ask

local M = {}

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
  request.timeout_s = 0.1 -- bounds the call with its retries: the first used all of it
  e = test.fails("timeout", open(fake):complete(request))
  test.eq(e.attempts, 1)
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

-- Symptom: a forgotten base_url looked like a network that was broken.
function M.test_an_address_that_nobody_gave_is_named_as_such()
  local closed = { model = "m", max_tries = 1, proxy = "http://127.0.0.1:1" }
  local e = test.fails("network", require "agentbox.model".open(closed):complete(ask()))
  test.contains(e.msg, "no base_url was given, so OpenAI's was asked")
  closed.base_url = "http://127.0.0.1:1/v1"
  e = test.fails("network", require "agentbox.model".open(closed):complete(ask()))
  test.ok(not e.msg:find("no base_url", 1, true), e.msg)
end

return M

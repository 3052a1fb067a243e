-- The client of chat completions servers against the scripted one: requests, sessions, tokens, keys, options.
local async = require "agentbox.async"
local json = require "agentbox.json"
local model = require "agentbox.model"
local test = require "agentbox.test"

local support = (arg[0]:match "^(.*/)" or "./") .. "../support/"
local client = dofile(support .. "client.lua")
local fakellm = dofile(support .. "fakellm.lua")
local open, ask, converse = client.open, client.ask, client.converse

local TOOLS = { {
  type = "function",
  ["function"] = {
    name = "run_command", description = "Run.",
    parameters = { type = "object", properties = { command = { type = "string" } }, required = { "command" } },
  },
} }


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

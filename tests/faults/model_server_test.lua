--- What model servers do to a rollout (faults B58, B71, B74, B75, B77, B79, B80, B82, B83, B85, B86, B88): a
--- scripted server, real sandboxes, the record as the witness.
local async = require "agentbox.async"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local rand = require "agentbox.sys.rand"
local secret = require "agentbox.secret"
local tool = require "agentbox.tool"
local traj = require "agentbox.traj"

local support = (arg[0]:match "^(.*/)" or "./") .. "../support/"
local fakellm = dofile(support .. "fakellm.lua")
local live = dofile(support .. "live.lua")
local run, sh = live.run, live.sh

local M = { setUp = live.need_native }

local function open(script, opts)
  local fake = fakellm.script(script)
  local all = { model = "fake", base_url = fake.url, retry_base_s = 0.002, proxy = false }
  for key, value in pairs(opts or {}) do all[key] = value end
  return model.open(all), fake
end

-- ---------------------------------------------------------------- the dialect

function M.test_a_strict_server_accepts_a_whole_rollout()
  local both = { content = "Thinking.", tool_calls = sh("ls /").tool_calls }
  local steps = { sh "ls", sh "echo $HOME", both, sh "false", "done" }
  for _, stream in ipairs { false, true } do
    local m, fake = open({ steps = steps, strict = true }, { stream = stream })
    local t = run(m)
    lu.assertEquals({ t.stop_reason, t.final_status }, { "final_answer", "success" })
    local log = fake.log()
    lu.assertEquals(#log, 5)
    for _, entry in ipairs(log) do lu.assertEquals(entry.session, log[1].session) end
    lu.assertTrue(#log[1].session > 0)
  end
end

function M.test_b75_no_tools_no_parameters_and_a_judge()
  local m, fake = open { steps = { "nothing to call", "judged: 1" }, strict = true, shared = true }
  local function judge()
    local said = assert(m:complete { messages = { { role = "user", content = "Is it good?" } }, session = "judge" })
    return said.message.content:find "1" and 1 or 0
  end
  local t = run(m, { tools = "custom", verifier = judge })
  lu.assertEquals({ t.stop_reason, t.reward }, { "final_answer", 1 }, t.error)
  for _, entry in ipairs(fake.log()) do
    lu.assertNil(entry.body.tools)
    lu.assertNil(entry.body.tool_choice)
  end
  local now = tool.define { api = 1, name = "now", description = "The time.", parameters = {}, run = function() return "noon" end }
  for _, arguments in ipairs { json.object {}, "", json.null } do
    m, fake = open { steps = { { tool_calls = { { name = "now", arguments = arguments } } }, "done" }, strict = true }
    t = run(m, { tools = "custom", custom_tools = { now } })
    lu.assertEquals({ t.stop_reason, t.messages[4].content }, { "final_answer", "noon" })
    lu.assertEquals(fake.log()[1].body.tool_choice, "auto")
  end
end

-- Two hundred replies in which members nobody needs are missing, null, or of another kind; seeded, so that a failure can
-- be repeated.
function M.test_b80_what_is_not_needed_may_be_anything()
  local random = rand.new(80)
  local odd = { json.null, "strange", 3.5, -1, json.array { 1 }, json.object { a = json.object {} }, false }
  local function mess(object, needed, also)
    for _, name in ipairs(json.keys(object)) do
      if not needed[name] and random:int(1, 3) == 1 then
        object[name] = random:int(1, 2) == 1 and odd[random:int(1, #odd)] or nil
      end
    end
    for _, name in ipairs(also) do
      if random:int(1, 4) == 1 then object[name] = odd[random:int(1, #odd)] end
    end
    return object
  end
  local steps = {}
  for i = 1, 200 do
    local reply = json.decode [[{"id":"x","object":"chat.completion","created":1,"model":"m","system_fingerprint":"f",
      "usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0}},
      "choices":[{"index":0,"logprobs":null,"finish_reason":"stop","message":{"role":"assistant","content":"fine",
      "refusal":null,"annotations":[],"tool_calls":null}}]}]]
    local choice = reply.choices[1]
    if i % 2 == 0 then
      choice.message.tool_calls = json.decode '[{"id":"c","type":"function","function":{"name":"t","arguments":"{}"}}]'
      mess(choice.message.tool_calls[1], { ["function"] = true }, { "index", "extra_content" })
    end
    mess(choice.message, { content = true, tool_calls = true }, { "audio", "function_call", "reasoning", "provider" })
    mess(choice, { message = true }, { "stop_reason", "native_finish_reason", "content_filter_results" })
    if json.is_object(reply.usage) then mess(reply.usage, {}, { "cache_write_tokens", "cost", "completion_tokens_details" }) end
    mess(reply, { choices = true }, { "service_tier", "metadata", "prompt_logprobs", "kv_transfer_params", "error" })
    steps[i] = { body = json.encode(reply) }
  end
  local m = open({ steps = steps }, { max_tries = 1 })
  for i, step in ipairs(steps) do
    local response, problem = m:complete { messages = { { role = "user", content = "x" } }, session = "s" }
    lu.assertNotNil(response, ("%d: %s: %s"):format(i, step.body, tostring(problem)))
    lu.assertEquals(traj.text(response.message), "fine", step.body)
    if i % 2 == 0 then lu.assertEquals(response.message.tool_calls[1]["function"].name, "t", step.body) end
  end
end

function M.test_two_rollouts_are_two_sessions()
  local m, fake = open { steps = { "done" } }
  run(m)
  run(m)
  local log = fake.log()
  lu.assertNotEquals(log[1].session, log[2].session)
end

function M.test_an_argument_of_twelve_megabytes_does_not_poison_the_rest()
  local m = open { steps = { sh("true " .. ("x"):rep(12 << 20)), sh "echo alive", "done" }, max_field = 10 << 20 }
  local t = run(m)
  lu.assertEquals(t.stop_reason, "final_answer")
  lu.assertStrContains(json.encode(t.messages), "alive")
end

-- ---------------------------------------------------------------- errors are not answers

function M.test_a_full_context_is_a_typed_stop()
  local m, fake = open { steps = {
    sh "ls", { status = 400, error = "This model's maximum context length is 200 tokens, you sent 300." },
  } }
  local t = run(m)
  lu.assertEquals(t.stop_reason, "context_length")
  lu.assertEquals(#fake.log(), 2)
  for _, message in ipairs(t.messages) do lu.assertNotStrContains(traj.text(message), "maximum context") end
end

function M.test_trouble_without_end_is_infrastructure_with_its_facts()
  local m = open({ steps = { sh "ls", { status = 503, error = "the model is loading" } } }, { max_tries = 3 })
  local t = run(m)
  lu.assertEquals({ t.stop_reason, t.failure_class, t.final_status }, { "model_error", "model_server", "error" })
  lu.assertNil(t.reward)
  lu.assertFalse(t.scored)
  local last = t.line.calls[#t.line.calls]
  lu.assertEquals(last.tries, 3)
  lu.assertStrContains(json.encode(last.error), "the model is loading")
  lu.assertStrContains(json.encode(last.error), "503")
end

function M.test_passing_trouble_is_not_seen_by_the_rollout()
  local steps = {
    { status = 500 }, sh "ls", { reset = true }, { html = true }, sh "ls", { status = 529 },
    { content = "x", truncate = 4 }, { status = 429, retry_after = 0.05 }, "done",
  }
  local t = run((open { steps = steps }))
  lu.assertEquals({ t.stop_reason, t.final_status }, { "final_answer", "success" })
  local tries = 0
  for call in t:calls() do tries = tries + call.tries end
  lu.assertTrue(tries == #steps or tries == #steps - 1, tries) -- a kept connection may be replaced below us
end

function M.test_a_stream_that_falls_silent_is_tried_again()
  local steps = { { content = "half an answer", stall_after = 2 }, "done" }
  local t = run((open({ steps = steps }, { stream = true, idle_timeout_s = 0.1 })))
  lu.assertEquals(t.stop_reason, "final_answer")
  lu.assertEquals(traj.text(t.messages[#t.messages]), "done")
end

function M.test_whose_doing_an_unanswered_call_is_at_the_end_of_the_episode()
  local slow = { content = ("x"):rep(4000), chunk_delay_s = 0.05 }
  local cases = {
    { steps = { { hang = true } }, server = true },                                  -- it answered nothing
    { steps = { sh "true", sh "true", { hang = true } }, server = true },            -- this call took most of the time
    { steps = { sh "sleep 1.5", { status = 503 }, { hang = true } }, server = true }, -- it had failed before
    { steps = { sh "sleep 1.5", { hang = true } } },                                 -- a command took most of the time
    { steps = { sh "true", slow }, stream = true },                                  -- a long answer
  }
  async.each(cases, function(case)
    local t = run(open({ steps = case.steps }, { stream = case.stream }), { timeout_s = 2 })
    local expected = case.server and { "model_error", "model_server", false } or { "wall_timeout", nil, true }
    lu.assertEquals({ t.stop_reason, t.failure_class, t.scored }, expected, json.encode(case.steps))
  end)
end

function M.test_unknown_usage_is_not_zero()
  local t = run((open({ steps = { { content = "done", usage = json.null } } }, { stream = true })))
  local call = t:calls()()
  lu.assertTrue(call.usage == nil or call.usage == json.null)
end

-- ---------------------------------------------------------------- replay

function M.test_a_rollout_can_be_replayed()
  local first = run((open { steps = { sh "echo hi", sh "ls /", "done" } }))
  local again = run((assert(model.replay { traj = first })))
  lu.assertEquals(json.encode(again.messages), json.encode(first.messages))
  local other = run(assert(model.replay { traj = first }), {
    task = { task_id = "t", description = "another", verifier = { command = "true" } },
  })
  lu.assertEquals(other.stop_reason, "model_error")
  lu.assertStrContains(json.encode(other.line.calls[1].error), "differs")
end

-- ---------------------------------------------------------------- concurrency

function M.test_the_configured_concurrency_is_real()
  local n = 512
  local m, fake = open { steps = { { content = "a", delay_s = 1 } } }
  async.scope(function(scope)
    for i = 1, n do
      scope:spawn(function()
        assert(m:complete { messages = { { role = "user", content = "x" } }, session = "c" .. i })
      end)
    end
  end)
  local most = 0
  for _, entry in ipairs(fake.log()) do most = math.max(most, entry.inflight) end
  lu.assertEquals(most, n)
end

-- ---------------------------------------------------------------- secrets

function M.test_the_key_is_in_no_record()
  local key = "sk-abc-" .. ("%x"):format(math.random(1 << 40))
  local m, fake = open({ steps = { sh "echo", { content = "your key is " .. key }, "done" } },
    { api_key = secret.new(key), sampling = { max_tokens = 77 } })
  local t = run(m)
  lu.assertEquals(fake.log()[1].headers.authorization, "Bearer " .. key)
  local line = json.encode(t.line)
  lu.assertNotStrContains(line, key)
  lu.assertStrContains(line, "max_tokens")
  lu.assertStrContains(line, "77")
end

return M

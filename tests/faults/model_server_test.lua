--- What model servers do to a rollout (faults B58, B71, B74, B77, B79, B82, B83, B85, B86, B88): a scripted server,
--- real sandboxes, the record as the witness.
local async = require "agentbox.async"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local secret = require "agentbox.secret"
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

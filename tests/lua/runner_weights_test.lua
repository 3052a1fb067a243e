--- Runs of many rollouts. Weights that change under a run.
local async = require "agentbox.async"
local fakellm = dofile((arg[0]:gsub("lua/[^/]*$", "support/fakellm.lua")))
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local runner = require "agentbox.runner"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))
local tool = require "agentbox.tool"

local M = {}

local tasks, done, start = runs.tasks, runs.done, runs.start

local function versions_of(t)
  local out = {}
  for call in t:calls() do out[#out + 1] = call.versions[1].v end
  return out
end

function M.test_every_call_has_the_version_of_the_moment_it_was_sent()
  local version, sent, run = 1, {}
  local asks = model.fn(function(request)
    table.insert(sent, version) -- before the wait: the weights may change meanwhile
    local mine = version
    async.sleep(0.002)
    if #request.messages > 10 then return "version " .. mine end
    return { content = "version " .. mine, tool_calls = { { name = "noop", arguments = {} } } }
  end)
  local noop = tool.define { api = 1, name = "noop", description = "Nothing.", parameters = {}, run = function() return "ok" end }
  run = start { tasks = tasks(12), n = 2, model = asks, policy = { version = 1 }, tools = "custom", custom_tools = { noop } }
  local _ <close> = run
  local clock = async.spawn(function()
    while run.state ~= "over" do
      async.sleep(0.01)
      version = version + 1
      run:policy { version = version }
    end
  end)
  local mixed, calls = 0, 0
  for group in run:groups() do
    for _, t in ipairs(assert(group:trajectories())) do
      local versions, i = versions_of(t), 0
      lu.assertEquals({ t.version_min, t.version_max }, { versions[1], versions[#versions] })
      if t.version_min < t.version_max then mixed = mixed + 1 end
      for _, message in ipairs(t.messages) do
        if message.role == "assistant" then
          i = i + 1
          lu.assertEquals(message.content, "version " .. versions[i])
        end
      end
      calls = calls + i
    end
    assert(run:ack(group))
  end
  clock:join()
  lu.assertEquals(calls, #sent)
  lu.assertTrue(mixed > 0, "no rollout saw two versions")
end

function M.test_rollouts_that_became_too_old_are_made_again()
  local hang, run = true
  local asks = model.fn(function()
    if hang then async.sleep(60) end
    return "done"
  end)
  run = start { tasks = tasks(3), n = 2, model = asks, policy = { version = 4 }, max_staleness = 1 }
  local _ <close> = run
  while run:stats().calls < 6 do async.sleep(0.005) end
  run:policy { version = 5 }
  lu.assertEquals(run.tally.stale, 0)
  hang = false
  run:policy { version = 6 }
  local n = 0
  for group in run:groups() do
    for _, t in ipairs(assert(group:trajectories())) do
      n = n + 1
      lu.assertEquals({ t.version_min, t.line.attempt, t.scored }, { 6, 0, true })
    end
    assert(run:ack(group))
  end
  lu.assertEquals({ n, run:wait().stale }, { 6, 6 })
end

function M.test_calls_in_flight_are_sent_again_for_new_weights()
  local sent, run = 0
  local asks = model.fn(function()
    sent = sent + 1
    if sent <= 4 then async.sleep(60) end
    return "done"
  end)
  run = start { tasks = tasks(4), model = asks, policy = { version = 1 }, inflight = "restart" }
  local _ <close> = run
  while sent < 4 do async.sleep(0.005) end
  run:policy { version = 2 }
  local sum = run:wait()
  lu.assertEquals({ sum.solved, sum.restarted_calls, sent, sum.attempts }, { 4, 4, 8, 4 })
end

function M.test_a_paused_run_sends_nothing_and_goes_on()
  local sent = 0
  local run <close> = start { tasks = tasks(30), concurrency = 3, model = model.fn(function()
    sent = sent + 1
    return "done"
  end) }
  while sent < 5 do async.sleep(0.001) end
  run:pause()
  async.sleep(0.05)
  local before = sent
  async.sleep(0.1)
  lu.assertEquals(sent, before)
  run:resume()
  lu.assertEquals(run:wait().solved, 30)
end

function M.test_roles_are_there_for_verifiers()
  local run <close> = assert(runner.start { sandbox = { backend = "none" }, tasks = tasks(2), models = { agent = done(), judge = model.fn(function() return "0.25" end) },
    verifier = function()
      local judge = assert(runner.model "judge")
      return tonumber(assert(judge:complete { messages = { { role = "user", content = "?" } } }).message.content)
    end })
  local sum = run:wait()
  lu.assertEquals({ sum.reward_mean, sum.scored }, { 0.25, 2 })
  lu.assertEquals(select(2, runner.model "judge").code, "config")
end

-- A server that tells in each reply which weights it was asked for, by the model's name, as one that has several does.
function M.test_weights_that_change_all_the_time_are_never_mixed()
  local staleness, noop_turns = 2, 6
  local steps = {}
  for i = 1, noop_turns do steps[i] = { tool_calls = { { name = "noop", arguments = { n = i } } } } end
  steps[#steps + 1] = "done"
  local fake = fakellm.script { steps = steps, delay_s = 0.005 }
  local noop = tool.define { api = 1, name = "noop", description = "Nothing.", parameters = { { "n", "integer" } },
    run = function() return "ok" end }
  local version = 1
  local run <close> = start { tasks = tasks(40), n = 2, concurrency = 16, tools = "custom", custom_tools = { noop },
    model = model.open { model = "m", base_url = fake.url }, policy = { version = version, model = "m@1" }, max_staleness = staleness }
  local clock = async.spawn(function()
    while run.state ~= "over" do -- by calls and not by time: a slow machine gets as far between two of them
      async.sleep(0.005)
      if run.models.agent.gate.entered >= 50 * version then
        version = version + 1
        run:policy { version = version, model = "m@" .. version }
      end
    end
  end)
  local calls, spread = 0, 0
  for group in run:groups() do
    for _, t in ipairs(assert(group:trajectories())) do
      local low, high = math.huge, 0
      for call in t:calls() do
        local v = call.versions[1].v
        local asked = json.decode(assert(t:body(call, "request"))).model
        lu.assertEquals({ asked, call.model, #call.versions }, { "m@" .. v, "m@" .. v, 1 })
        lu.assertTrue(v >= high, "an older version after a newer one")
        low, high, calls = math.min(low, v), math.max(high, v), calls + 1
      end
      lu.assertEquals({ t.version_min, t.version_max }, { low, high })
      lu.assertTrue(high - low <= staleness, ("%d to %d"):format(low, high))
      spread = math.max(spread, high - low)
    end
    assert(run:ack(group))
  end
  clock:join()
  local sum = run:wait()
  lu.assertEquals({ sum.solved, calls }, { 80, 80 * (noop_turns + 1) })
  lu.assertTrue(version > 3 and spread > 0, "the weights did not change under a rollout")
end

-- ---------------------------------------------------------------- models that `prepare` chose

local function counting(name, fn)
  local one = model.fn(fn)
  one.name, one.forgotten, one.closed = name, {}, 0
  function one:forget(session) self.forgotten[#self.forgotten + 1] = session end
  function one:close() self.closed = self.closed + 1 end
  return one
end

function M.test_a_model_of_its_own_is_the_runs_like_any_other()
  local answer = function() return { content = "done", usage = { prompt_tokens = 7, completion_tokens = 3, total_tokens = 10 } } end
  local common, own, seen = counting("common", answer), counting("own", answer), {}
  local run
  run = start { tasks = tasks(6), group_size = 1, policy = { version = 4, model = "common@4" }, model = common,
    prepare = function(t)
      local which = tonumber(t.task_id:sub(2))
      if which == 1 then return { model = run.models.agent } end -- what the run has is not wrapped again
      if which == 2 then return { model = common } end
      return which % 2 == 1 and { model = own } or nil
    end,
    on_event = function(kind, fields) if kind == "rollout" then seen[fields.id] = true end end }
  local _ <close> = run
  lu.assertTrue(run.models.agent:beside(common) == run.models.agent)
  lu.assertTrue(run.models.agent:beside(own) == run.models.agent:beside(own))
  for group in run:groups() do
    for _, t in ipairs(assert(group:trajectories())) do
      lu.assertEquals({ t.version_min, t.version_max }, { 4, 4 })
      local which = tonumber(t.task_id:sub(2))
      lu.assertEquals(json.decode(json.encode(t.line.policy)).model, which > 2 and which % 2 == 1 and "own" or "common")
    end
    assert(run:ack(group))
  end
  local sum = run:wait()
  lu.assertEquals({ sum.solved, sum.model_calls }, { 6, 6 })
  lu.assertEquals({ #common.forgotten, #own.forgotten }, { 4, 2 })
  lu.assertEquals({ common.closed, own.closed }, { 0, 0 })
  for _, session in ipairs(own.forgotten) do lu.assertTrue(seen[session]) end
end

function M.test_a_pause_holds_models_of_their_own_too()
  local sent, run = 0
  run = start { tasks = tasks(20), concurrency = 4, prepare = function()
    return { model = function()
      sent = sent + 1
      if sent == 3 then run:pause() end
      return "done"
    end }
  end }
  local _ <close> = run
  while not run.paused do async.sleep(0.001) end
  while run.models.agent.gate.running > 0 and next(run.models.agent._state.waiters) == nil and run.running > 0 do async.sleep(0.001) end
  local before = sent
  for _ = 1, 50 do async.yield() end
  lu.assertEquals(sent, before)
  run:resume()
  lu.assertEquals({ run:wait().solved, sent }, { 20, 20 })
end

-- Symptom: nothing in the end of a slow run said that its server had refused every third call.
function M.test_tries_that_were_made_again_are_counted_and_new_weights_are_none()
  local fake = fakellm.script { steps = { { status = 429, retry_after = 0 }, { status = 500 }, "done", "done" }, shared = true }
  local run <close> = start { tasks = tasks(2), concurrency = 1, model = model.open {
    model = "m", base_url = fake.url, retry_base_s = 0.01,
  } }
  local sum = run:wait()
  lu.assertEquals({ sum.solved, sum.model_calls, sum.repeated_tries, sum.restarted_calls }, { 2, 2, 2, 0 })
end

-- Symptom: `agentbox ps` said "running" of a run that a trainer had paused.
function M.test_a_paused_run_says_so_to_who_looks_from_outside()
  local dir <close> = runs.tmp()
  local door = require "agentbox.async.gate".new(1)
  local pass = door:enter()
  local run <close> = start { tasks = tasks(1), out = dir.path, run_id = "r", model = model.fn(function()
    door:enter():release()
    return "done"
  end) }
  local registry, look = require "agentbox.runner.registry", require "agentbox.cli._runs".look
  run:pause()
  registry.tell(run)
  lu.assertEquals({ look(run.run_dir).state, run:stats().paused }, { "paused", true })
  run:resume()
  registry.tell(run)
  lu.assertEquals({ look(run.run_dir).state, run:stats().paused }, { "running", false })
  pass:release()
  run:wait()
  lu.assertEquals(look(run.run_dir).state, "over")
end

function M.test_a_model_made_for_one_rollout_is_closed_with_it()
  local first = fakellm.script { "done", "done", "done" }
  local run <close> = start { tasks = tasks(3), concurrency = 1, policy = { version = 9, model = "other" }, prepare = function()
    return { model = { model = "own", base_url = first.url } }
  end }
  lu.assertEquals(run:wait().solved, 3)
  for _, request in ipairs(first.log()) do lu.assertEquals(request.body.model, "own") end
  lu.assertEquals(#first.log(), 3)
  local bad <close> = start { tasks = tasks(1), attempts = 1, prepare = function() return { model = { model = 7 } } end }
  lu.assertStrContains(bad:wait().failure, "model")
end

return M

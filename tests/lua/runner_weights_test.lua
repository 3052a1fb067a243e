--- Runs of many rollouts. Weights that change under a run.
local async = require "agentbox.async"
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
      lu.assertEquals({ t.version_min, t.line.attempt, t.scored }, { 6, 1, true })
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

return M

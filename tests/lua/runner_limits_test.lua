--- Runs of many rollouts. What a run may use at once, its options, seeds and order.
local async = require "agentbox.async"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local runner = require "agentbox.runner"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))
local tool = require "agentbox.tool"

local M = {}

local tasks, done, start, counter = runs.tasks, runs.done, runs.start, runs.counter

function M.test_B36_limits_are_kept_and_reached()
  local inside, judged, called = counter(), counter(), counter()
  local slow = tool.define {
    api = 1, name = "slow", description = "Waits.", parameters = { { "n", "integer", "any" } },
    run = function()
      local _ <close> = inside.enter()
      async.sleep(0.005)
      return "ok"
    end,
  }
  local asks = model.fn(function(request)
    local _ <close> = called.enter()
    async.sleep(0.001)
    if #request.messages > 4 then return "done" end
    return { tool_calls = { { name = "slow", arguments = { n = 1 } } } }
  end)
  local run <close> = start {
    tasks = tasks(40), model = asks, concurrency = 9, limits = { commands = 3, judges = 2, creating = 4 },
    tools = "custom", custom_tools = { slow },
    verifier = function()
      local _ <close> = judged.enter()
      async.sleep(0.002)
      return 1
    end,
  }
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.solved, sum.unscored }, { 40, 40, 0 })
  lu.assertEquals({ inside.peak, judged.peak, inside.entered }, { 3, 2, 80 })
  lu.assertEquals({ sum.peaks.rollouts.peak, sum.peaks.commands.peak, sum.peaks.judges.peak }, { 9, 3, 2 })
  lu.assertTrue(sum.peaks.creating.peak <= 4 and sum.peaks.creating.peak >= 1)
  lu.assertTrue(called.peak <= 9)
  lu.assertEquals(sum.peaks.model_calls.peak, called.peak)
end

function M.test_a_run_takes_sandboxes_from_its_own_pool()
  local pool
  local run <close> = start {
    tasks = tasks(12), model = model.fn(done), concurrency = 2, sandbox = { pool = 2 },
    verifier = function()
      pool = require "agentbox.sys.fiber".current():locals().pool
      while pool:count() < 2 do async.yield() end
      return 1
    end,
  }
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.solved, sum.unscored }, { 12, 12, 0 })
  lu.assertTrue(pool.hits >= 8, pool.hits)
  lu.assertEquals(pool:count(), 0)
  for _, box in ipairs { { pool = 1.5 }, { pool = 1000 }, { pool = 1, backend = "none" } } do
    local none, problem = runner.start { tasks = tasks(1), model = model.fn(done), sandbox = box }
    lu.assertEquals({ none, problem.code }, { nil, "config" })
    lu.assertStrContains(problem.msg, "sandbox.pool")
  end
end

function M.test_a_gate_survives_those_who_leave_the_queue()
  local gate = require "agentbox.async.gate".new(1)
  local first = gate:enter()
  local waiting = async.spawn(function()
    local _ <close> = gate:enter()
    async.sleep(60)
  end)
  async.yield()
  lu.assertEquals(gate.waiting, 1)
  first:release() -- lets it in, but it is cancelled before it runs
  waiting:cancel()
  waiting:join()
  lu.assertEquals({ gate.running, gate.waiting }, { 0, 0 })
  local again <close> = gate:enter() -- luacheck: ignore
  local _, problem = gate:enter(0.01)
  lu.assertEquals(problem.code, "timeout")
  lu.assertEquals({ gate.running, gate.waiting, gate.peak }, { 1, 0, 1 })
end

function M.test_a_lab_schedules_its_groups()
  local order = {}
  local run <close> = start { tasks = tasks(6), n = 2, concurrency = 1, lookahead = 6,
    schedule = function(ready)
      if #ready < 6 and not order[1] then return nil end
      local best = 1
      for i, group in ipairs(ready) do
        if group.begun then return i end
        if group.id > ready[best].id then best = i end
      end
      return best
    end,
    on_event = function(kind, fields)
      if kind == "group" then order[#order + 1] = fields.id end
    end }
  run:wait()
  lu.assertEquals(order, { "t6", "t5", "t4", "t3", "t2", "t1" })
end

function M.test_members_have_seeds_of_their_own_that_come_again()
  local function seeds()
    local out = {}
    local run <close> = start { tasks = tasks(2), n = 3, seed = 7, model = done(), prepare = function(_, slot)
      return { agent = function(ctx)
        out[slot.group .. "/" .. slot.index] = ctx.seed
        return "final_answer"
      end }
    end }
    run:wait()
    return out
  end
  local first, again, distinct = seeds(), seeds(), {}
  lu.assertEquals(first, again)
  local n = 0
  for _, seed in pairs(first) do
    lu.assertEquals(math.type(seed), "integer")
    n = n + (distinct[seed] and 0 or 1)
    distinct[seed] = true
  end
  lu.assertEquals(n, 6)
end

function M.test_options_are_checked_before_anything_starts()
  local function refused(opts)
    local all = { tasks = tasks(1), model = done() }
    for key, value in pairs(opts) do all[key] = value end
    local ok, run, problem = pcall(runner.start, all)
    lu.assertTrue(not ok or run == nil)
    return tostring(ok and problem.msg or run)
  end
  lu.assertStrContains(refused { concurency = 3 }, "concurency")
  lu.assertStrContains(refused { n = 6, group_size = 4 }, "not a multiple")
  lu.assertStrContains(refused { oversample = 2 }, "about groups")
  lu.assertStrContains(refused { tasks = "/nowhere" }, "/nowhere")
  lu.assertStrContains(refused { models = { agent = done() } }, "not both")
  lu.assertStrContains(refused { resume = true }, "resume needs")
  local _, problem = runner.start { tasks = tasks(1) }
  lu.assertStrContains(problem.msg, "no model")
  lu.assertEquals(json.encode(problem.code), '"config"')
end

return M

--- A rollout of ten thousand turns: a turn late in it costs what an early one did, in instructions and in memory.
local ab = require "agentbox"
local count = require "agentbox.sys.count"
local lu = require "luaunit"
local test = require "agentbox.test"

local M = {}

local TURNS = 10000

--- Instructions of a turn, at most.
local TURN = 1950

local echo = ab.tool.define {
  api = 1, name = "echo", description = "Says it again.", parameters = { { "n", "integer" } },
  run = function(_, args) return "said " .. args.n end,
}

-- Instructions and kilobytes that the engine had used at some turns.
local function measured(marks)
  local function answer(_, n)
    if n > TURNS then return "done" end
    return { tool_calls = { { name = "echo", arguments = { n = n } } } }
  end
  local script, at = { last = answer }, {}
  local traj = assert(ab.rollout.run {
    task = ab.task.new { task_id = "long", description = "Go on.", verifier = { type = "command", command = "true" } },
    model = ab.model.scripted(script), tools = "custom", custom_tools = { echo }, sandbox = { backend = "none" },
    verifier = function() return 1 end, max_steps = TURNS + 1, timeout_s = 200,
    agent = { before_turn = function(_, turn)
      if not marks[turn] then return end
      collectgarbage()
      at[turn] = { instructions = count.instructions(true), kb = collectgarbage "count" }
    end },
  })
  count.instructions(false)
  lu.assertEquals({ traj.stop_reason, traj.metrics.steps }, { "final_answer", TURNS })
  lu.assertEquals(#traj.line.nodes, 2 + 2 * TURNS + 1)
  lu.assertEquals(#traj.line.errors, 0)
  return at
end

function M.test_a_late_turn_costs_what_an_early_one_did()
  if not count.instructions then test.skip "a build that counts instructions is needed (cmake preset dev)" end
  local at = measured { [1000] = true, [2000] = true, [9000] = true, [10000] = true }
  local early, late = at[2000].instructions - at[1000].instructions, at[10000].instructions - at[9000].instructions
  lu.assertTrue(early > 1000 * 500, "instructions are not counted: " .. early)
  lu.assertTrue(early < 1000 * TURN, ("a turn takes %d instructions"):format(early // 1000))
  lu.assertTrue(late < early * 1.1, ("%d instructions early, %d late"):format(early, late))
  local before, after = at[2000].kb - at[1000].kb, at[10000].kb - at[9000].kb
  lu.assertTrue(after < before * 1.5, ("%.0f KB early, %.0f KB late"):format(before, after))
end

return M

local lu = require "luaunit"
local json = require "agentbox.json"
local traj = require "agentbox.traj"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}

function M.test_text_of_a_message()
  lu.assertEquals(traj.text { content = "a" }, "a")
  lu.assertEquals(traj.text { content = json.null }, "")
  lu.assertEquals(traj.text {}, "")
  lu.assertEquals(traj.text { content = { { type = "text", text = "a" }, { type = "image_url" }, { type = "text", text = "b" } } }, "ab")
end

function M.test_calls_are_filtered()
  local t = made.sample(nil, { tokens = true }):finish()
  local n = 0
  for call in t:calls { trainable = true } do
    n = n + 1
    lu.assertEquals(#call.tokens.out, #call.tokens.lp)
    lu.assertEquals(call.purpose, "agent")
  end
  lu.assertEquals(n, 2)
  lu.assertNil(t:calls { purpose = "judge" }())
  lu.assertNil(made.sample():finish():calls()().tokens)
end

function M.test_unknown_field_is_nil()
  lu.assertNil(made.sample():finish().nothing)
end

local UNSCORED = {
  status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false },
}
local FAILED = { final_status = "failed", reward = { scored = true, value = 0.0 }, stop = { reason = "max_turns", class = "policy" } }

function M.test_aggregate()
  local list = {
    made.sample({ id = "a", task_id = "x" }):finish(),
    made.sample({ id = "b", task_id = "x" }):finish(FAILED),
    made.sample({ id = "c", task_id = "y" }):finish(UNSCORED),
  }
  local sum = traj.aggregate(list)
  lu.assertEquals(sum.n, 3)
  lu.assertAlmostEquals(sum.success_rate, 1 / 3, 1e-9)
  lu.assertEquals(sum.mean_reward, 0.5)
  lu.assertEquals({ sum.scored, sum.unscored }, { 2, 1 })
  lu.assertEquals({ sum.mean_steps, sum.mean_tool_calls }, { 1.0, 1.0 })
  lu.assertAlmostEquals(sum.mean_duration_s, 3.2, 1e-9)
  lu.assertEquals(sum.by_status, { success = 1, failed = 1, error = 1 })
  lu.assertEquals(sum.by_task.x, { n = 2, success_rate = 0.5, mean_reward = 0.5, mean_steps = 1.0 })
  lu.assertEquals(sum.by_task.y.n, 1)
end

function M.test_aggregate_of_nothing_is_zero()
  local sum = traj.aggregate {}
  lu.assertEquals({ sum.n, sum.success_rate, sum.mean_reward, sum.mean_steps, sum.mean_tool_calls, sum.mean_duration_s },
    { 0, 0.0, 0.0, 0.0, 0.0, 0.0 })
  lu.assertEquals({ sum.by_status, sum.by_task }, { {}, {} })
end

return M

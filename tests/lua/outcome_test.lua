local lu = require "luaunit"
local outcome = require "agentbox.outcome"

local M = {}

local YES, NO = { success = true, reward = 1.0 }, { success = false, reward = 0.0 }

local function of(reason, verdict, penalties, steps, detail)
  return outcome.of(outcome.stop(reason, detail), verdict, steps or 0, penalties)
end

function M.test_a_verdict_beats_every_policy_stop()
  for _, reason in ipairs { "final_answer", "max_turns", "wall_timeout", "context_length", "no_progress", "call_length" } do
    local out = of(reason, YES)
    lu.assertEquals(out.final_status, "success")
    lu.assertEquals(out.reward, 1.0)
    lu.assertNil(out.class)
  end
end

function M.test_no_verdict_follows_the_stop()
  local expected = { final_answer = "failed", max_turns = "max_steps", wall_timeout = "timeout", token_budget = "failed",
    context_length = "failed", no_progress = "failed", tool_stop = "failed" }
  for reason, status in pairs(expected) do
    local out = of(reason, NO)
    lu.assertEquals(out.final_status, status)
    lu.assertEquals(out.reward, 0.0)
    lu.assertIsTrue(out.scored)
    lu.assertEquals(out.class, "policy")
  end
end

function M.test_infrastructure_never_gets_a_number()
  for _, reason in ipairs { "model_error", "model_abort", "tool_error", "sandbox_error", "scorer_error", "task_error",
    "shutdown", "user_cancel" } do
    for _, verdict in ipairs { YES, NO } do
      local out = of(reason, verdict)
      lu.assertEquals(out.final_status, "error")
      lu.assertIsFalse(out.scored)
      lu.assertNil(out.reward)
      lu.assertIsTrue(outcome.INFRA[out.class])
    end
  end
end

function M.test_a_sandbox_that_the_agent_broke_is_scored()
  local out = of("sandbox_error", NO, nil, 0, { class = "policy", msg = "no shell" })
  lu.assertEquals({ out.final_status, out.reward, out.class }, { "failed", 0.0, "policy" })
end

function M.test_penalties()
  lu.assertAlmostEquals(of("final_answer", YES, { step_penalty = 0.1 }, 3).reward, 0.7, 1e-12)
  lu.assertAlmostEquals(of("wall_timeout", NO, { timeout_penalty = 0.5 }).reward, -0.5, 1e-12)
  lu.assertAlmostEquals(of("max_turns", YES, { max_steps_penalty = 0.25 }).reward, 0.75, 1e-12)
  lu.assertEquals(of("max_turns", YES, { max_steps_penalty = 0.25 }).raw, 1.0)
end

function M.test_an_unknown_word_is_an_answer()
  local stop = outcome.stop "all done here"
  lu.assertEquals({ stop.reason, stop.detail }, { "env_done", "all done here" })
end

return M

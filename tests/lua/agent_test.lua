local agent = require "agentbox.agent"
local budget = require "agentbox.budget"
local err = require "agentbox.err"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local record = require "agentbox.record"
local set = require "agentbox.tool.set"
local tool = require "agentbox.tool"

local M = {}

local function echo(fields)
  local spec = { api = 1, name = "echo", description = "d", parameters = { { "text", "string", default = "" } },
    run = function(_, args) return "said " .. args.text end }
  for key, value in pairs(fields or {}) do spec[key] = value end
  return tool.define(spec)
end

local function calls(...)
  local list = {}
  for i, text in ipairs { ... } do list[i] = { name = "echo", arguments = { text = text } } end
  return { tool_calls = list }
end

--- An agent on a scripted model, without a sandbox.
local function start(turns, opts)
  opts = opts or {}
  local rec = record.new { run_id = "r", id = "r", task = { task_id = "t" } }
  local limits = { max_turns = 40, episode_timeout_s = 60, step_timeout_s = 30 }
  for key, value in pairs(opts.limits or {}) do limits[key] = value end
  local handle = type(turns) == "function" and model.fn(turns) or model.scripted(turns)
  local ctx = agent.ctx {
    task = { task_id = "t" }, model = handle, tools = set.new(opts.tools or { echo() }), budget = budget.new(limits),
    rec = rec, workspace = "/workspace", session = "s", pause = function() end, sandbox = opts.sandbox,
  }
  ctx:say(agent.message("system", "s"), "prompt")
  ctx:say(agent.message("user", "u"), "prompt")
  local reason, detail = agent.tool_loop(opts.loop)(ctx)
  return reason, ctx, detail, rec
end

local function roles(ctx)
  local list = {}
  for i, message in ipairs(ctx.messages) do list[i] = message.role:sub(1, 1) end
  return table.concat(list)
end

local function contents(ctx, role)
  local list = {}
  for _, message in ipairs(ctx.messages) do
    if message.role == role then list[#list + 1] = message.content end
  end
  return list
end

-- ---------------------------------------------------------------- ends

function M.test_an_answer_ends_it()
  local reason, ctx = start { "done" }
  lu.assertEquals(reason, "final_answer")
  lu.assertEquals({ ctx.budget.turns, ctx.budget.model_calls }, { 0, 1 })
end

function M.test_tools_then_answer()
  local reason, ctx = start { calls("a", "b"), calls "c", "done" }
  lu.assertEquals(reason, "final_answer")
  lu.assertEquals(roles(ctx), "suattata")
  lu.assertEquals(contents(ctx, "tool"), { "said a", "said b", "said c" })
  lu.assertEquals(ctx.budget.turns, 2)
end

function M.test_max_turns_counts_turns_with_tools()
  local reason, ctx = start({ calls "1", calls "2", calls "3" }, { limits = { max_turns = 2 } })
  lu.assertEquals(reason, "max_turns")
  lu.assertEquals(ctx.budget.turns, 2)
end

function M.test_zero_turns_calls_no_model()
  local reason, ctx = start({ "never" }, { limits = { max_turns = 0 } })
  lu.assertEquals({ reason, ctx.budget.model_calls }, { "max_turns", 0 })
end

function M.test_zero_time_is_a_timeout_without_a_call()
  local reason, ctx = start({ "never" }, { limits = { episode_timeout_s = 0 } })
  lu.assertEquals({ reason, ctx.budget.model_calls }, { "wall_timeout", 0 })
end

function M.test_tokens_are_paid_before_they_are_read()
  local reason, ctx = start(function()
    return { tool_calls = { { name = "echo", arguments = "{broken" } }, usage = { prompt_tokens = 900, completion_tokens = 100 } }
  end, { limits = { max_tokens = 3000 } })
  lu.assertEquals({ reason, ctx.budget.model_calls }, { "token_budget", 3 })
end

-- ---------------------------------------------------------------- what models get wrong

function M.test_malformed_calls_are_answered_one_by_one()
  local reason, ctx = start { { tool_calls = {
    { id = "1", name = "echo", arguments = '{"text":5}' }, { id = "2", name = "nope", arguments = "{}" },
    { id = "3", name = "echo", arguments = '"x"' }, { id = "4", name = "echo", arguments = '{"text":"ok"}' },
  } }, "done" }
  lu.assertEquals(reason, "final_answer")
  local answers = contents(ctx, "tool")
  lu.assertEquals(#answers, 4)
  lu.assertStrContains(answers[1], "text: must be string")
  lu.assertStrContains(answers[2], "unknown tool: nope")
  lu.assertStrContains(answers[3], "ERROR: invalid arguments for echo")
  lu.assertEquals(answers[4], "said ok")
end

function M.test_history_holds_valid_arguments()
  local _, ctx = start { { tool_calls = { { id = "1", name = "echo", arguments = "{broken" } } }, "done" }
  for _, message in ipairs(ctx.messages) do
    for _, one in ipairs(message.tool_calls or {}) do
      lu.assertNotNil(json.decode(one["function"].arguments))
      lu.assertNil(one.parse_error)
    end
  end
end

function M.test_nothing_but_malformed_calls_stops()
  local n = 0
  local reason, ctx = start(function()
    n = n + 1
    return { tool_calls = { { name = "nope" .. n, arguments = {} } } }
  end)
  lu.assertEquals({ reason, ctx.budget.turns }, { "no_progress", 5 })
end

function M.test_the_same_turn_again_and_again_stops()
  local reason, ctx = start(function() return calls "same" end)
  lu.assertEquals({ reason, ctx.budget.turns }, { "no_progress", 6 })
  reason = start(function() return calls "same" end, { loop = { max_repeats = 0 }, limits = { max_turns = 9 } })
  lu.assertEquals(reason, "max_turns")
end

function M.test_the_same_call_with_other_results_goes_on()
  local n = 0
  local counting = echo { run = function() n = n + 1 return tostring(n) end }
  local reason = start(function() return calls "same" end, { tools = { counting }, limits = { max_turns = 9 } })
  lu.assertEquals(reason, "max_turns")
end

function M.test_empty_replies_are_nudged_then_stopped()
  local reason, ctx = start { "", "  \n", "" }
  lu.assertEquals(reason, "no_progress")
  lu.assertEquals(#contents(ctx, "user"), 3)
  reason = start { "", "done" }
  lu.assertEquals(reason, "final_answer")
end

function M.test_cut_off_calls_are_never_run()
  local ran = false
  local spy = echo { run = function() ran = true return "x" end }
  local turn = calls("a", "b")
  turn.finish_reason = "length"
  local reason, ctx = start({ turn, "done" }, { tools = { spy } })
  lu.assertEquals(reason, "final_answer")
  lu.assertIsFalse(ran)
  for _, text in ipairs(contents(ctx, "tool")) do lu.assertStrContains(text, "cut off") end
end

function M.test_a_wrong_tool_is_not_called_cut_off()
  local _, ctx = start { { tool_calls = { { name = "nope", arguments = {} } }, finish_reason = "tool_calls" }, "done" }
  lu.assertStrContains(contents(ctx, "tool")[1], "unknown tool: nope")
end

function M.test_a_cut_off_answer_says_so()
  lu.assertEquals((start { { content = "half an ans", finish_reason = "length" } }), "call_length")
end

function M.test_repeated_and_missing_ids_are_answered_once_each()
  local _, ctx = start { { tool_calls = {
    { id = "x", name = "echo", arguments = { text = "a" } }, { id = "x", name = "echo", arguments = { text = "b" } },
    { id = "", name = "echo", arguments = { text = "c" } },
  } }, "done" }
  local assistant, seen = ctx.messages[3], {}
  for i, one in ipairs(assistant.tool_calls) do
    lu.assertNotEquals(one.id, "")
    lu.assertNil(seen[one.id])
    seen[one.id] = true
    lu.assertEquals(ctx.messages[3 + i].tool_call_id, one.id)
  end
end

function M.test_huge_arguments_are_cut_in_history_only()
  local got
  local spy = echo { run = function(_, args) got = #args.text return "ok" end }
  local _, ctx, _, rec = start({ calls(("x"):rep(1 << 20)), "done" }, { tools = { spy } })
  lu.assertEquals(got, 1 << 20)
  lu.assertTrue(#ctx.messages[3].tool_calls[1]["function"].arguments < 1000)
  lu.assertNotNil(json.decode(ctx.messages[3].tool_calls[1]["function"].arguments))
  local traj = rec:finish { status = "completed", stop = { reason = "final_answer" }, reward = { scored = false } }
  local kept = false
  for _, bytes in pairs(rec._blobs) do kept = kept or #bytes > 1 << 20 end
  lu.assertTrue(kept, "the whole reply is in the record")
  lu.assertNotNil(traj)
end

-- ---------------------------------------------------------------- what fails around it

function M.test_model_failures_by_kind()
  local function failing(code) return start(function() return nil, err.new(code, "no") end) end
  lu.assertEquals((failing "model"), "model_error")
  lu.assertEquals((failing "network"), "model_error")
  lu.assertEquals((failing "context"), "context_length")
end

function M.test_a_dead_sandbox_stops_at_once_and_all_calls_are_answered()
  local dead = echo { run = function() return nil, err.new("sandbox", "pid 1 is gone") end }
  local reason, ctx, detail = start({ calls("a", "b"), "never" }, { tools = { dead } })
  lu.assertEquals(reason, "sandbox_error")
  lu.assertEquals(detail.code, "sandbox")
  lu.assertEquals(ctx.budget.model_calls, 1)
  lu.assertEquals(#contents(ctx, "tool"), 2)
end

function M.test_a_broken_sandbox_is_the_policys_doing()
  local broken = echo { run = function() return "exit_code=127", { broken = "no shell" } end }
  local reason, _, detail = start({ calls "rm -rf /bin", "never" }, { tools = { broken } })
  lu.assertEquals({ reason, detail.class }, { "sandbox_error", "policy" })
end

function M.test_a_tool_may_end_the_episode()
  local submit = echo { run = function() return "submitted", { stop = "tool_stop" } end }
  lu.assertEquals((start({ calls "x", "never" }, { tools = { submit } })), "tool_stop")
end

-- ---------------------------------------------------------------- hooks

function M.test_hooks()
  local log = {}
  local reason, ctx = start({ calls "a", calls "b", calls "c" }, { loop = {
    before_turn = function(_, turn) log[#log + 1] = "before " .. turn end,
    after_turn = function(_, turn, results)
      log[#log + 1] = ("after %d %s"):format(turn, results[1].text)
      if turn == 2 then return "env_done" end
    end,
    on_tool_call = function(_, call)
      if call["function"].arguments:find "b" then return "blocked" end
    end,
  } })
  lu.assertEquals(reason, "env_done")
  lu.assertEquals(log, { "before 1", "after 1 said a", "before 2", "after 2 blocked" })
  lu.assertEquals(contents(ctx, "tool"), { "said a", "blocked" })
end

function M.test_unknown_options_are_refused()
  lu.assertErrorMsgContains("befor_turn: unknown key", agent.tool_loop, { befor_turn = print })
end

function M.test_agents_by_name()
  lu.assertIsFunction((agent.resolve "shell"))
  lu.assertIsFunction((agent.resolve(nil)))
  local got, problem = agent.resolve "no_such_agent"
  lu.assertNil(got)
  lu.assertStrContains(problem.msg, "unknown agent: no_such_agent")
end

function M.test_the_record_has_every_call_and_run()
  local _, _, _, rec = start { calls("a", "b"), "done" }
  local traj = rec:finish { status = "completed", stop = { reason = "final_answer" }, reward = { scored = false } }
  lu.assertEquals(#traj.line.calls, 2)
  lu.assertEquals(#traj.line.tool_runs, 2)
  lu.assertEquals(#traj.line.errors, 0)
  lu.assertEquals(traj.metrics.steps, 1)
  lu.assertEquals(traj.metrics.tool_calls, 2)
end

return M

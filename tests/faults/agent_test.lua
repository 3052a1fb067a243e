--- What agents, tools and models do to a rollout, against real sandboxes (faults B01, B07, B16, B18, B28, B31, B50, B66, B68,
--- B69, B71, B72, B108, B114, B123, B126 and the four ways of a lab's tool).
local async = require "agentbox.async"
local json = require "agentbox.json"
local lu = require "luaunit"
local tool = require "agentbox.tool"

local live = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/live.lua")
local run, sh = live.run, live.sh

local M = { setUp = live.need_native }

-- ---------------------------------------------------------------- sandboxes that are broken from inside

function M.test_a_broken_sandbox_ends_the_rollout_within_two_calls()
  for _, command in ipairs { "rm -rf /bin /usr/bin", "chmod 000 /bin/sh", "rm -f /lib64/* /lib/*/libc.so* /usr/lib/*/libc.so*" } do
    local turns = { sh(command) }
    for i = 2, 8 do turns[i] = sh "echo still alive" end
    local t = run(turns)
    local alive = t.messages[6] and t.messages[6].content:find("still alive", 1, true)
    -- Root of an ordinary user's sandbox owns nothing in /usr and cannot break it.
    if not alive then
      lu.assertTrue(#t.line.calls <= 2, command)
      lu.assertEquals(t.stop_reason, "sandbox_error", command)
      lu.assertIsTrue(t.scored, "the agent broke it: what it left is judged")
    end
  end
end

function M.test_what_does_not_break_a_sandbox_does_not_end_the_rollout()
  for _, command in ipairs { "kill -9 1", "pkill -f agentbox; pkill -f python; kill -9 -1", "no_such_program", "exit 127", "exit 126",
    "head -c 3000000000 /dev/zero > /workspace/full; rm /workspace/full" } do
    local t = run { sh(command), sh "echo alive", "ok" }
    lu.assertEquals(t.final_status, "success", command)
    lu.assertStrContains(t.messages[6].content, "alive", command)
  end
end

function M.test_memory_is_an_observation()
  local t = run({ sh "python3 -c 'x = bytearray(10**9)'", sh "echo alive", "ok" }, { sandbox = { limits = { memory_mb = 64 } } })
  lu.assertEquals(t.final_status, "success")
  lu.assertStrContains(t.messages[6].content, "alive")
end

function M.test_setup_has_its_own_clock()
  local t = run({ sh("sleep 60", 0.2), "ok" }, { timeout_s = 30, task = { task_id = "t", description = "d",
    setup_commands = { "sleep 0.5; touch ok" }, verifier = { command = "test -f ok" } } })
  lu.assertEquals(t.final_status, "success")
  lu.assertStrContains(t.messages[4].content, "timed_out=true")
end

function M.test_nothing_of_a_timed_out_command_lives_on()
  local t = run { sh("for i in 1 2 3; do setsid sleep 300 & done; wait", 0.3), sh "pgrep -c sleep", "ok" }
  lu.assertStrContains(t.messages[6].content, "--- stdout ---\n0")
end

function M.test_stdin_is_closed()
  local t = run { sh("cat > f; python3; echo done", 20), "ok" }
  lu.assertEquals(t.messages[4].content, "exit_code=0\n--- stdout ---\ndone\n")
end

-- ---------------------------------------------------------------- calls

function M.test_raw_control_characters_in_arguments()
  local t = run { { tool_calls = { { id = "1", name = "run_command", arguments = '{"command":"echo a\necho b\tc"}' } } }, "ok" }
  lu.assertEquals(t.messages[4].content, "exit_code=0\n--- stdout ---\na\nb c\n")
end

function M.test_five_megabytes_through_a_call()
  local t = run { { tool_calls = { { name = "write_file", arguments = { path = "big", content = ("x"):rep(5 << 20) } } } },
    sh "wc -c < big", "ok" }
  lu.assertEquals(t.messages[4].content, "Wrote 5242880 chars to big")
  lu.assertStrContains(t.messages[6].content, "5242880")
  lu.assertTrue(#t.messages[3].tool_calls[1]["function"].arguments < 1000)
end

function M.test_the_prompt_is_on_no_command_line()
  local secret = "--help xyzzy-prompt-text"
  local t = run({ sh "cat /proc/*/cmdline | tr '\\0' ' '", "ok" }, { task = { task_id = "-rf", description = secret,
    verifier = { command = "true" } } })
  lu.assertNotStrContains(t.messages[4].content, "xyzzy-prompt")
end

-- ---------------------------------------------------------------- time

function M.test_what_was_done_is_kept_when_time_is_up()
  local t = run({ sh "touch a", sh "touch b", sh "touch c", sh "sleep 300" }, { timeout_s = 2,
    task = { task_id = "t", description = "d", verifier = { command = "test -f c" }, artifacts = { "a" } } })
  lu.assertEquals({ t.stop_reason, t.final_status, t.reward }, { "wall_timeout", "success", 1.0 })
  lu.assertEquals(t.metrics.steps, 4)
  lu.assertEquals(t.line.artifacts[1].path, "a")
end

function M.test_a_model_that_never_answers_is_infrastructure()
  local t = run(function() async.sleep(3600) end, { step_timeout_s = 0.2, timeout_s = 30 })
  lu.assertEquals({ t.stop_reason, t.failure_class, t.scored }, { "model_error", "model_server", false })
end

function M.test_a_cancelled_rollout_leaves_a_partial_record()
  local started, ended = false, nil
  async.scope(function(scope)
    local fiber = scope:spawn(function()
      run(function()
        started = true
        async.sleep(3600)
      end, { on_end = function(t) ended = t end })
    end)
    while not started do async.yield() end
    fiber:cancel()
    fiber:join(10)
  end)
  lu.assertEquals({ ended.stop_reason, ended.line.status, ended.scored }, { "user_cancel", "cancelled", false })
end

-- ---------------------------------------------------------------- a lab's tool against a hundred other rollouts

local BAD_TOOLS = {
  loop = function() while true do end end,
  memory = function() local t = {} while true do t[#t + 1] = ("x"):rep(10000) .. #t end end,
  pattern = function() return tostring((("a"):rep(100000) .. "b"):find(("a*"):rep(30) .. "c")) end,
  raise = function() error "tool bug" end,
}

function M.test_bad_tools_leave_a_hundred_rollouts_untouched()
  local function bad(name)
    local evil = tool.define { api = 1, name = "evil", description = "d", run = BAD_TOOLS[name], cpu_s = 0.5, memory_mb = 32 }
    local t = run({ { tool_calls = { { name = "evil", arguments = {} } } }, "ok" }, { custom_tools = { evil } })
    lu.assertEquals(t.final_status, "success", name)
    lu.assertStrContains(t.messages[4].content, "ERROR: evil failed: ", name)
    return t
  end
  local good = tool.define { api = 1, name = "good", description = "d", run = function() async.sleep(0.05) return "fine" end }
  local jobs = { "loop", "memory", "pattern", "raise" }
  for i = 1, 100 do jobs[#jobs + 1] = i end
  local results = async.each(jobs, function(job)
    if type(job) == "string" then return bad(job) end
    local turns = {}
    for i = 1, 3 do turns[i] = { tool_calls = { { name = "good", arguments = {} } } } end
    turns[4] = "ok"
    return run(turns, { custom_tools = { good }, tools = "custom" })
  end, { limit = 24 })
  for i = 5, 104 do
    lu.assertEquals({ results[i].final_status, results[i].metrics.steps }, { "success", 3 })
  end
  lu.assertStrContains(json.encode(results[4].line.tool_runs[1].traceback), "agent_test.lua")
end

return M

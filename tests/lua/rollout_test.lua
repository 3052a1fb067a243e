local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local rollout = require "agentbox.rollout"
local sandbox = require "agentbox.sandbox"
local test = require "agentbox.test"

local M = {}

local function need_sandbox()
  local sb, problem = sandbox.create {}
  if not sb then test.skip("no native sandbox here: " .. problem.msg) end
  sb:close()
end

local function task(fields)
  local out = { task_id = "t", description = "d", verifier = { type = "command", command = "test -f done" } }
  for key, value in pairs(fields or {}) do out[key] = value end
  return out
end

local function sh(command) return { tool_calls = { { name = "run_command", arguments = { command = command } } } } end

local function run(fields, turns, opts)
  local all = { task = task(fields), model = type(turns) == "function" and model.fn(turns) or model.scripted(turns) }
  for key, value in pairs(opts or {}) do all[key] = value end
  return assert(rollout.run(all))
end

function M.setUp() need_sandbox() end

-- ---------------------------------------------------------------- ends

function M.test_solved_and_not_solved()
  local t = run(nil, { sh "touch done", "ok" })
  lu.assertEquals({ t.final_status, t.reward, t.stop_reason }, { "success", 1.0, "final_answer" })
  lu.assertNil(t.failure_class)
  t = run(nil, { "done it" })
  lu.assertEquals({ t.final_status, t.reward, t.failure_class }, { "failed", 0.0, "policy" })
  lu.assertEquals(t.verify.exit_code, 1)
end

function M.test_a_solved_task_counts_whatever_the_stop()
  local t = run(nil, { sh "touch done", sh "echo more" }, { max_steps = 1 })
  lu.assertEquals({ t.final_status, t.stop_reason, t.reward }, { "success", "max_turns", 1.0 })
end

function M.test_rewards_and_exit_codes_of_the_task()
  local t = run({ verifier = { command = "exit 3", success_exit_code = 3, reward_success = 2.5 } }, { "x" })
  lu.assertEquals({ t.final_status, t.reward }, { "success", 2.5 })
  t = run({ verifier = { command = "false", reward_failure = -1 } }, { "x" })
  lu.assertEquals({ t.final_status, t.reward }, { "failed", -1.0 })
end

function M.test_an_infrastructure_failure_has_no_number()
  local t = run({ verifier = { command = "true" } }, function() return nil, err.new("model", "503") end)
  lu.assertEquals({ t.final_status, t.stop_reason, t.failure_class, t.scored }, { "error", "model_error", "model_server", false })
  lu.assertNil(t.reward)
  lu.assertNil(t.verify)
end

function M.test_a_failing_setup_is_the_tasks_doing()
  local t = run({ setup_commands = { "true", "echo why >&2; exit 4", "touch never" } }, { "never" })
  lu.assertEquals({ t.final_status, t.stop_reason, t.failure_class, t.scored }, { "error", "task_error", "task", false })
  lu.assertEquals(t.metadata.failure_kind, "seed")
  lu.assertStrContains(t.line.error, "exit code 4")
  lu.assertStrContains(t.line.error, "why")
  lu.assertEquals(#t.line.calls, 0)
end

function M.test_files_modes_and_setup_reach_the_agent()
  local t = run({
    files = { ["run.sh"] = { text = "#!/bin/sh\necho hi\n", mode = "0755" }, ["a b/c"] = { base64 = "AP8B" } },
    setup_commands = { "echo set up > made" },
  }, { sh "./run.sh && cat made && od -An -tx1 'a b/c' && stat -c %a run.sh 'a b/c'", "ok" })
  local said = t.messages[4].content
  for _, text in ipairs { "hi\nset up\n", "00 ff 01", "755\n644" } do lu.assertStrContains(said, text) end
end

function M.test_the_solution_is_never_seeded_nor_hidden_files()
  local t = run({ solution = { s = "1" }, hidden = { h = "2" }, verifier = { command = "test -f h && ! test -f s" } },
    { sh "ls -A; find / -name h -newer /proc/1 -path '*workspace*' 2>/dev/null; true", "ok" })
  lu.assertEquals(t.messages[4].content, "exit_code=0")
  lu.assertEquals(t.final_status, "success")
end

function M.test_a_timed_out_command_is_an_observation()
  local t = run({ verifier = { command = "true" } }, {
    { tool_calls = { { name = "run_command", arguments = { command = "echo part; sleep 300 & sleep 300", timeout_s = 0.3 } } } },
    sh "pgrep -c sleep", "ok" })
  lu.assertStrContains(t.messages[4].content, "exit_code=-1\ntimed_out=true\n--- stdout ---\npart")
  lu.assertStrContains(t.messages[4].content, "timed out after 0.3 s")
  lu.assertStrContains(t.messages[6].content, "\n0")
  lu.assertEquals(t.final_status, "success")
end

function M.test_a_hanging_verifier_is_a_failure_of_the_work()
  local t = run({ verifier = { command = "touch x; sleep 300 & sleep 300", timeout_s = 0.3 } }, { "x" })
  lu.assertEquals({ t.final_status, t.reward, t.scored }, { "failed", 0.0, true })
  lu.assertIsTrue(t.verify.timed_out)
end

function M.test_the_sandbox_that_the_agent_broke()
  local t = run({ verifier = { command = "true" } }, { sh "rm -rf /bin/* /usr/bin/* /usr/sbin/* 2>/dev/null; true", sh "echo alive", sh "ls", "never" })
  if t.messages[6] and t.messages[6].content:find "alive" then test.skip "this sandbox's root owns nothing in /usr" end
  lu.assertEquals(t.stop_reason, "sandbox_error")
  lu.assertEquals({ t.final_status, t.scored }, { "success", true })
  lu.assertTrue(#t.line.calls <= 2)
end

-- ---------------------------------------------------------------- input

function M.test_bad_input_starts_nothing()
  local cases = {
    { { task = "/nowhere/at/all" }, "no such file" },
    { { tools = { "raed_file" } }, "unknown tool: raed_file" },
    { { agent = "no_such" }, "unknown agent" },
    { { agent = { max_stpes = 3 } }, 'max_stpes: unknown key (did you mean "max_steps"?)' },
    { { verifier = "no_such" }, "unknown verifier" },
    { { custom_tools = { "/nowhere.lua" } }, "no such tool file" },
    { { sandbox = { workspace = "relative" } }, "must be an absolute path" },
    { { sandbox = { workspace = "/../.." } }, "must be an absolute path below /" },
    { { sandbox = { workspace = "//" } }, "must be an absolute path below /" },
    { { tools = { 5 } }, "tools[0]: must be the name of a tool, is 5" },
    { { sandbox = { workspace = "/dev/shm/w" } }, "must not be in /proc or /dev" },
    { { sandbox = { network = "bogus" } }, "sandbox.network: must be none, full or a list of what to allow" },
    { { sandbox = { network = { allow = "x" } } }, "sandbox.network.allow: must be a list" },
    { { sandbox = { limits = { memory_mb = 1e300 } } }, "sandbox.limits.memory_mb: must be at most" },
    { { sandbox = { limits = { cpu_count = 1e9 } } }, "sandbox.limits.cpu_count: must be at most" },
    { { sandbox = { limits = { nofile = 3 } } }, "sandbox.limits.nofile: must be at least" },
    { { sandbox = { limits = { memory = 3 } } }, "sandbox.limits.memory: unknown key" },
    { { sandbox = { env = { ["A=B"] = "x" } } }, 'sandbox.env: "A=B" cannot be the name of a variable' },
    { { sandbox = { env = { A = "x\0y" } } }, "sandbox.env.A: holds a zero byte" },
    { { sandbox = { image = "host\0" } }, "sandbox.image: must be text without a zero byte" },
  }
  for _, case in ipairs(cases) do
    local opts = { task = task(), model = model.scripted { "x" } }
    for key, value in pairs(case[1]) do opts[key] = value end
    local t, problem = rollout.run(opts)
    lu.assertNil(t)
    lu.assertStrContains(problem.msg, case[2])
  end
  lu.assertErrorMsgContains('modle: unknown key (did you mean "model"?)', rollout.run, { task = task(), modle = 1 })
end

function M.test_a_task_that_names_an_unknown_verifier()
  local t, problem = rollout.run { task = task { verifier = { type = "pytets" } }, model = model.scripted { "x" } }
  lu.assertNil(t)
  lu.assertStrContains(problem.msg, 'task ' .. task().task_id .. ': verifier.type: unknown: pytets (did you mean "pytest"?)')
end

-- ---------------------------------------------------------------- more

function M.test_penalties_and_metadata()
  local t = run(nil, { sh "touch done", "ok" }, { agent = { step_penalty = 0.1 }, metadata = { who = "me" } })
  lu.assertAlmostEquals(t.reward, 0.9, 1e-9)
  lu.assertEquals(t.outcome, 1.0)
  lu.assertEquals(t.metadata.who, "me")
end

function M.test_stepping()
  local ro <close> = assert(rollout.start { task = task(), model = model.scripted { sh "touch one", sh "touch done", "ok" } })
  lu.assertIsTrue(ro:step())
  lu.assertEquals(#ro.ctx.messages, 4)
  lu.assertIsTrue(ro:step())
  lu.assertEquals(#ro.ctx.messages, 6)
  local t = ro:finish()
  lu.assertEquals(t.final_status, "success")
  lu.assertIs(ro:finish(), t)
end

function M.test_a_closed_rollout_leaves_a_partial_trajectory()
  local ended
  do
    local ro <close> = assert(rollout.start { task = task(), model = model.scripted { sh "touch one", "ok" },
      on_end = function(t) ended = t end })
    ro:step()
  end
  lu.assertEquals({ ended.stop_reason, ended.scored, #ended.messages }, { "user_cancel", false, 4 })
  lu.assertEquals(ended.line.status, "cancelled")
end

function M.test_the_episodes_time_is_hard()
  local t = run({ verifier = { command = "test -f one" } }, { sh "touch one", sh "sleep 300" }, { timeout_s = 1 })
  lu.assertEquals({ t.stop_reason, t.final_status, t.reward }, { "wall_timeout", "success", 1.0 })
  lu.assertStrContains(t.messages[6].content, "timed_out=true")
end

function M.test_a_custom_agent()
  local t = run(nil, { "unused" }, { agent = function(ctx)
    ctx:note("who", "custom")
    ctx:inject("user", "hello")
    assert(ctx.sandbox:exec("touch done", { cwd = ctx.workspace }))
    return "env_done"
  end })
  lu.assertEquals({ t.final_status, t.stop_reason }, { "success", "env_done" })
  lu.assertEquals(t.line.notes.who:decode(), "custom")
end

function M.test_a_failed_call_that_an_agent_raises_is_what_it_is()
  local cases = {
    { function() return nil, err.new("context", "too long") end, { "context_length", "policy", true } },
    { function() return nil, err.new("model", "HTTP 500") end, { "model_error", "model_server", false } },
    { function() return nil, err.new("timeout", "late") end, { "model_error", "model_server", false } },
    { function() return nil, err.new("badarg", "no such model") end, { "model_error", "model_server", false } },
    { function() return nil, "a word" end, { "model_error", "model_server", false } },
    { function() return nil end, { "model_error", "model_server", false } },
  }
  for i, case in ipairs(cases) do
    local bare = { name = "bare", describe = function() return { name = "bare" } end, complete = case[1] }
    for _, agent in ipairs { "tool_loop", function(ctx) assert(ctx:ask()) end } do
      local t = run(nil, {}, { model = bare, agent = agent })
      lu.assertEquals({ t.stop_reason, t.failure_class, t.scored }, case[2], i)
    end
  end
end

function M.test_an_agent_that_raises_is_a_defect_of_the_engines_side()
  local t = run({ verifier = { command = "true" } }, { "x" }, { agent = function() error "agent bug" end })
  lu.assertEquals({ t.final_status, t.failure_class, t.scored }, { "error", "engine", false })
  lu.assertStrContains(t.line.error, "agent bug")
end

function M.test_a_lua_verifier_with_named_numbers()
  local t = run(nil, { sh "echo 41 > answer; mkdir src; touch src/x", "ok" }, { verifier = function(ev)
    local out = assert(ev.sandbox:exec("cat answer", { cwd = ev.workspace }))
    local diff = assert(ev:diff())
    return { close = 1 - (42 - tonumber(out.stdout)) / 42, tidy = diff:all_under "src/" and 1 or 0 }, #diff .. " files"
  end })
  lu.assertEquals({ t.final_status, t.scored }, { "failed", true })
  lu.assertEquals({ t.components[1].name, t.components[2].name, t.components[2].score }, { "close", "tidy", 0 })
  lu.assertEquals(t.verify.text, "2 files")
end

function M.test_a_lua_verifier_that_fails_leaves_it_unscored()
  for _, verifier in ipairs {
    function() error "verifier bug" end, function() return nil, "cannot say" end, function() return 0 / 0 end,
    function() return {} end, function() return print end, { run = function() while true do end end, cpu_s = 0.3 },
  } do
    local t = run(nil, { "x" }, { verifier = verifier })
    lu.assertEquals({ t.final_status, t.failure_class, t.stop_reason, t.scored }, { "error", "verifier", "scorer_error", false })
  end
end

function M.test_composition()
  local verify = require "agentbox.verify"
  local function all(unscored) return verify.compose {
    { "file", 0.5, verify.command { command = "test -f done" } },
    { "bonus", 0.5, function() return 0.5, "half" end, only_if = "file > 0" },
    { "broken", 1.0, function() return nil, "no idea" end }, unscored = unscored }
  end
  local t = run(nil, { sh "touch done", "ok" }, { verifier = all "renormalise" })
  lu.assertAlmostEquals(t.reward, 0.75, 1e-9)
  lu.assertEquals(#t.components, 2)
  t = run(nil, { "ok" }, { verifier = all "renormalise" })
  lu.assertAlmostEquals(t.reward, 0.0, 1e-9)
  t = run(nil, { "ok" }, { verifier = all() })
  lu.assertIsFalse(t.scored)
end

function M.test_artifacts_are_bytes()
  local t = run({ artifacts = { "*.bin", "out/**" } }, { sh "printf 'a\\377\\n' > x.bin; mkdir out; touch out/y z", "ok" })
  local names = {}
  for i, file in ipairs(t.line.artifacts) do names[i] = file.path .. ":" .. file.bytes end
  lu.assertEquals(table.concat(names, " "), "out/y:0 x.bin:3")
end

function M.test_a_tool_over_a_spawned_process()
  local tool = require "agentbox.tool"
  local cat = tool.define {
    api = 1, name = "cat", description = "echo", exclusive = true, parameters = { { "text", "string" } },
    open = function(ctx) return ctx.sandbox:spawn { "cat" } end,
    run = function(_, args, proc) return proc:ask(args.text .. "\n", { until_text = "\n", timeout_s = 5 }) end,
    close = function(proc) proc:kill() end,
  }
  local function say(text) return { tool_calls = { { name = "cat", arguments = { text = text } } } } end
  local t = run({ verifier = { command = "true" } }, { say "one", say "two", "ok" }, { custom_tools = { cat } })
  lu.assertStrContains(t.messages[4].content, "one")
  lu.assertStrContains(t.messages[6].content, "two")
end

function M.test_a_tool_file_replaces_a_builtin()
  local dir = assert(fs.tmpdir "agentbox-tool")
  assert(fs.write(dir .. "/read_file.lua", [[return require("agentbox.tool").define { api = 1, name = "read_file",
    description = "d", parameters = { { "path", "string" } }, run = function(ctx, args) return "mine: " .. args.path end }]]))
  local t = run({ verifier = { command = "true" } }, { { tool_calls = { { name = "read_file", arguments = { path = "x" } } } }, "ok" },
    { custom_tools = { dir .. "/read_file.lua" } })
  lu.assertEquals(t.messages[4].content, "mine: x")
  assert(fs.remove(dir, true))
end

function M.test_a_user_of_its_own()
  local t = run({ files = { a = "x" }, verifier = { type = "pytest", path = "test_it.py" }, hidden = { ["test_it.py"] =
    "import os\ndef test_it():\n    assert os.getuid() == 1000 and open('b').read() == 'x'\n" } },
    { sh "id -u; cp a b; rm a", "ok" }, { sandbox = { user = 1000 } })
  if t.line.error ~= require("agentbox.json").null and t.line.error:find "only root exists" then test.skip(t.line.error) end
  lu.assertEquals(t.messages[4].content, "exit_code=0\n--- stdout ---\n1000\n")
  lu.assertEquals(t.final_status, "success", t.verify and t.verify.stdout)
end

function M.test_odd_task_ids()
  for _, id in ipairs { "-rf", "--help me", "a/b c é", ("x"):rep(500) } do
    local t = run({ task_id = id, description = "--help " .. id, verifier = { command = "true" } }, { "ok" })
    lu.assertEquals({ t.task_id, t.final_status }, { id, "success" })
  end
end

function M.test_what_the_network_refused_is_in_the_record()
  local connect = [[python3 -c "import socket
try: socket.create_connection(('8.8.8.8', 81), 5)
except OSError: pass"]]
  local t = run({ verifier = { type = "command", command = connect:gsub("81", "82") .. "; true" } }, { sh "true", sh(connect), "done" },
    { sandbox = { network = { allow = { "x.test:80" } } } })
  local network = json.decode(json.encode(t.line.sandbox)).network
  lu.assertEquals(#network.denied, 1)
  local denied = network.denied[1]
  lu.assertEquals({ denied.address, denied.port, denied.turn }, { "8.8.8.8", 81, 2 })
  lu.assertEquals(network.allow[1], "x.test:80")
  local of_verifier = json.decode(json.encode(t.line.verify)).denied
  lu.assertEquals({ #of_verifier, of_verifier[1].address, of_verifier[1].port }, { 1, "8.8.8.8", 82 }, "the verifier's, apart")
end

-- What a task's set-up makes is for the agent to change; what only root may do is the image's business.
function M.test_setup_commands_run_as_the_agents_user()
  local probe = sandbox.create { user = 1000 }
  if not probe then test.skip "only root in a sandbox here" end
  probe:close()
  local setup = { "id -u > who; mkdir d; touch d/f", "! touch /srv/x 2>/dev/null" }
  local t = run({ setup_commands = setup, verifier = { command = "test ! -e d" } },
    { sh "cat who; stat -c %u d/f; rm -r d && echo removed", "done" }, { sandbox = { user = 1000 } })
  lu.assertStrContains(t.messages[4].content, "1000\n1000\nremoved\n")
  lu.assertEquals(t.final_status, "success", t.error)
end

-- The agent is somebody without rights, and may not what its verifier may.
function M.test_the_agents_user_and_the_verifiers_are_apart()
  local probe = sandbox.create { user = 1000 }
  if not probe then test.skip "only root in a sandbox here" end
  probe:close()
  local turns = { sh "id -u; touch /srv/x; echo x > mine; stat -c %u mine", "done" }
  for user, wanted in pairs { [0] = "0\ncould\n", [1001] = "1001\n", [""] = "1000\n" } do
    local verifier = { command = "id -u; touch /srv/y 2>/dev/null && echo could; test -s mine", user = user ~= "" and user or nil }
    local t = run({ verifier = verifier }, turns, { sandbox = { user = 1000 } })
    lu.assertStrContains(t.messages[4].content, "1000\n1000\n")
    lu.assertStrContains(t.messages[4].content, "Permission denied")
    lu.assertEquals({ t.final_status, t.verify.stdout }, { "success", wanted }, t.error)
  end
end

return M

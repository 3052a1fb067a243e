--- Commands: what ends them, what they print, what they are given (faults B03, B04, B06, B08, B10, B11, B14, B19, B21), on
--- every backend.
local async = require "agentbox.async"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local rand = require "agentbox.sys.rand"
local store = require "agentbox.store"
local tool = require "agentbox.tool"
local traj = require "agentbox.traj"

local live = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/live.lua")

local M = { setUp = live.need_native }

local function each_backend(check)
  for _, backend in ipairs(live.BACKENDS) do
    local sb <close> = live.sandbox(backend)
    check(sb, backend)
  end
end

local function tag() return "zq" .. rand.uuid4() end

local function until_count(sb, mark, n)
  while live.count(sb, mark) ~= n do async.sleep(0.01) end
end

-- ---------------------------------------------------------------- F01: what ends a command

-- A pipeline, children in the background, a child with a session of its own, one that is stopped.
local function tree(mark)
  return ("yes %s | cat | cat >/dev/null & setsid sh -c 'sleep 300; : %s' & sh -c 'kill -STOP $$; : %s' & wait")
    :format(mark, mark, mark)
end

function M.test_b03_cancel_kill_and_timeout_end_the_whole_tree()
  each_backend(function(sb, backend)
    local ways = {
      cancel = function(command)
        local fiber = async.spawn(function() return sb:exec(command) end)
        return function()
          fiber:cancel()
          fiber:join(10)
        end
      end,
      kill = function(command)
        local process = assert(sb:spawn(command))
        return function()
          process:kill()
          process:wait(10)
          process:close()
        end
      end,
      close = function(command)
        local process = assert(sb:spawn(command))
        return function() process:close() end
      end,
      timeout = function(command)
        local fiber = async.spawn(function() return assert(sb:exec(command, { timeout_s = 1 })) end)
        return function()
          local _, out = fiber:join(30)
          lu.assertIsTrue(out.timed_out)
        end
      end,
    }
    for name, start in pairs(ways) do
      local mark = tag()
      local finish = start(tree(mark))
      while live.count(sb, mark) < 4 do async.sleep(0.01) end
      finish()
      -- Backend none has no view of what left its group.
      if backend ~= "none" then until_count(sb, mark, 0) end
      sb:exec(("pkill -9 -f %s"):format(mark))
      lu.assertEquals(assert(sb:exec "echo alive").stdout, "alive\n", name)
    end
  end)
end

function M.test_b04_a_hanging_scorer_is_ended_with_all_that_it_started()
  local mark = tag()
  local task = { task_id = "t", description = "d", verifier = {
    command = ("sh -c 'while :; do :; done' %s & wait"):format(mark), timeout_s = 1,
  } }
  local jobs = {}
  for i = 1, 12 do jobs[i] = i end
  local list = async.each(jobs, function() return live.run({ "done" }, { task = task }) end, { limit = 12 })
  for _, t in ipairs(list) do
    lu.assertEquals({ t.final_status, t.stop_reason, t.reward }, { "failed", "final_answer", 0.0 })
    lu.assertIsTrue(t.verify.timed_out, "told apart from a test that failed")
    lu.assertStrContains(t.verify.text, "no result within 1 s")
  end
  local host <close> = live.sandbox "none"
  lu.assertEquals(live.count(host, mark), 0)
end

function M.test_b06_each_deadline_has_its_own_name()
  each_backend(function(sb)
    local out = assert(sb:exec("echo begun; sleep 300", { timeout_s = 0.5 }))
    lu.assertEquals({ out.timed_out, out.exit_code, out.stdout }, { true, -1, "begun\n" })
    -- Nothing to read for a while is the reader's deadline, and the command goes on.
    local process <close> = assert(sb:spawn "sleep 0.5; echo late")
    local bytes, problem = process:read { timeout_s = 0.05 }
    lu.assertNil(bytes)
    lu.assertEquals({ problem.code, problem.own }, { "timeout", true })
    lu.assertStrContains(problem.msg, "nothing came within 0.05 s")
    lu.assertEquals(process:read { timeout_s = 30 }, "late\n")
    -- The caller's own deadline is neither.
    local ok, raised = pcall(async.timeout, 0.05, function() return sb:exec "sleep 300" end)
    if ok then raised = select(2, async.timeout(0.05, function() return sb:exec "sleep 300" end)) end
    lu.assertEquals(raised.code, "timeout")
    lu.assertEquals(assert(sb:exec "echo alive").stdout, "alive\n")
  end)
end

-- ---------------------------------------------------------------- F02: what a command prints

local NOISE = 'printf "\\377\\376\\000A\\033]0;x\\007"; head -c 4096 /dev/urandom'

function M.test_b08_binary_output_is_bytes_inside_and_text_at_the_edge()
  each_backend(function(sb)
    local out = assert(sb:exec(NOISE))
    lu.assertEquals({ #out.stdout, out.stdout:sub(1, 4) }, { 4096 + 4 + 6, "\xff\xfe\0A" })
  end)
  local dir = assert(fs.tmpdir "agentbox-b08-")
  local t = live.run({ live.sh(NOISE), live.sh(NOISE .. " >&2; exit 3"), "done" })
  local saved <close> = assert(store.open(dir, { run_id = t.run_id }))
  local stored = assert(saved:append(t))
  -- Every reader of every form reads it: Python's is strict about UTF-8 and JSON.
  local out = dir .. "/x.jsonl"
  assert(require("agentbox.export").convert { input = dir, format = "jsonl", out = out })
  local host <close> = live.sandbox "none"
  local read = assert(host:exec({ "python3", "-c", [[
import json, sys
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8", newline="\n").read()
    for line in [text] if text.startswith("{\n") else text.split("\n")[:-1]:
        json.loads(line)
]], stored.json, out, stored.run_dir .. "/trajectories-00000.jsonl" }))
  lu.assertEquals({ read.exit_code, read.stderr }, { 0, "" })
  lu.assertEquals(assert(traj.load(stored.json)).final_status, "success")
  for i = 4, 6, 2 do lu.assertNotNil(utf8.len(t.messages[i].content)) end
  fs.remove(dir, true)
end

function M.test_b10_a_cut_is_between_characters()
  each_backend(function(sb, backend)
    -- The cap of exec is one of bytes, and is kept exactly; what was cut is counted.
    local out = assert(sb:exec("yes 日本語 | head -c 1000001", { max_output_bytes = 65537 }))
    lu.assertEquals({ #out.stdout, out.stdout_dropped, out.truncated }, { 65537, 1000001 - 65537, true })
    -- A character that comes byte by byte.
    local parts = {}
    out = assert(sb:exec("for b in 346 227 245 346 234 254; do printf \"\\\\$b\"; sleep 0.01; done",
      { on_output = function(chunk) parts[#parts + 1] = chunk end }))
    lu.assertEquals({ out.stdout, table.concat(parts) }, { "日本", "日本" })
    if backend == "none" then return end
    local process <close> = assert(sb:spawn("for b in 346 227 245; do printf \"\\\\$b\"; sleep 0.01; done; echo .", { pty = true }))
    lu.assertStrContains(assert(process:read { until_text = ".", timeout_s = 30 }), "日.")
  end)
  -- What a model sees is cut between characters, and without one that nobody printed.
  for shift = 0, 2 do
    local command = ("printf '%s'; yes 日本語 | tr -d '\\n' | head -c 1000001"):format(("x"):rep(shift))
    local text = live.run({ live.sh(command), "done" }).messages[4].content
    lu.assertNotNil(utf8.len(text))
    lu.assertStrContains(text, "...[truncated ")
    lu.assertNotStrContains(text, "\u{FFFD}")
  end
end

function M.test_b11_one_cap_for_every_way_that_a_command_ends()
  local ways = {
    ok = "yes | head -c 50000000", error = "yes | head -c 50000000; exit 3", both = "yes >&2 & yes | head -c 50000000; kill $!",
    timeout = "yes", signal = "yes | head -c 50000000; kill -9 $$",
  }
  for name, command in pairs(ways) do
    local t = live.run { live.sh(command, name == "timeout" and 1 or 60), "done" }
    local text = t.messages[4].content
    lu.assertTrue(#text < 110000, name .. ": " .. #text)
    lu.assertNotNil(text:find("...[truncated ", 1, true), name)
    local cut = tonumber(text:match "%[truncated (%d+) chars%]")
    lu.assertEquals(t.line.tool_runs[1].cut >= cut and cut > 0, true, name)
  end
  -- A tool that raises, or fails with, a text of its own size.
  local huge = ("x"):rep(5 << 20)
  for _, run in ipairs { function() error(huge, 0) end, function() return nil, huge end, function() return huge end } do
    local loud = tool.define { api = 1, name = "loud", description = "d", run = run }
    local t = live.run({ { tool_calls = { { name = "loud", arguments = {} } } }, "done" }, { custom_tools = { loud } })
    lu.assertTrue(#t.messages[4].content < 300000, #t.messages[4].content)
    lu.assertTrue(#json.encode(t.line) < 2 << 20, #json.encode(t.line))
  end
  -- A name or an argument of that size in the call itself.
  for _, call in ipairs {
    { name = huge, arguments = {} }, { name = "run_command", arguments = { [huge] = 1 } },
    { name = "run_command", arguments = { command = "true", timeout_s = huge } },
  } do
    local t = live.run { { tool_calls = { call } }, "done" }
    lu.assertTrue(#json.encode(t.messages) < 100000, #json.encode(t.messages))
  end
end

function M.test_b14_output_is_bytes_whatever_the_lines_are()
  local bytes = "a\n\nb\r\n\r\nc\n\n"
  each_backend(function(sb)
    local command = "printf 'a\\n\\nb\\r\\n\\r\\nc\\n\\n'"
    lu.assertEquals(assert(sb:exec(command)).stdout, bytes)
    local parts = {}
    assert(sb:exec(command, { on_output = function(chunk) parts[#parts + 1] = chunk end }))
    lu.assertEquals(table.concat(parts), bytes)
    local process <close> = assert(sb:spawn(command))
    local got = ""
    for chunk in function() return process:read { max = 3 } end do got = got .. chunk end
    lu.assertEquals(got, bytes)
  end)
  local t = live.run { live.sh "printf 'a\\n\\nb\\n\\n'", "done" }
  lu.assertEquals(t.messages[4].content, "exit_code=0\n--- stdout ---\na\n\nb\n\n")
end

-- ---------------------------------------------------------------- F03: what a command is given

function M.test_b19_large_stdin_arrives_whole_or_the_call_fails()
  local big = ("a"):rep(64 << 20)
  each_backend(function(sb)
    lu.assertEquals(assert(sb:exec({ "wc", "-c" }, { stdin = big })).stdout, "67108864\n")
    -- A program that takes no more is an outcome, not a hang and not an error.
    lu.assertEquals(assert(sb:exec("head -c 3", { stdin = big })).stdout, "aaa")
    local process <close> = assert(sb:spawn { "wc", "-c" })
    assert(process:write(big))
    process:close_stdin()
    lu.assertEquals(assert(process:wait(60)).stdout, "67108864\n")
    local gone <close> = assert(sb:spawn { "true" })
    gone:wait(30)
    local _, problem = gone:write(big)
    lu.assertEquals(problem.code, "io")
  end)
end

function M.test_b21_what_begins_with_a_dash_is_data()
  local dir = assert(fs.tmpdir "agentbox-b21-")
  local task = { task_id = "-rf", description = "--help me", files = { ["-n"] = "starter\n", ["--version"] = "v\n" },
    setup_commands = { "test -f ./-n" }, verifier = { command = "grep -q edited ./-n" }, artifacts = { "-n" } }
  local function call(name, arguments) return { name = name, arguments = arguments } end
  local t = live.run({
    { tool_calls = { call("read_file", { path = "-n" }), call("list_files", { path = "." }),
      call("write_file", { path = "-rf", content = "--\n" }),
      call("edit_file", { path = "-n", old_string = "starter", new_string = "edited" }) } }, "- done",
  }, { task = task })
  lu.assertEquals({ t.final_status, t.task_id }, { "success", "-rf" }, t.error)
  lu.assertEquals({ t.messages[4].content, t.messages[5].content }, { "starter\n", "--version\n-n" })
  lu.assertStrContains(t.messages[2].content, "--help me")
  lu.assertEquals(t:artifact "-n", "edited\n")
  local saved <close> = assert(store.open(dir, { run_id = "-r" }))
  local stored = assert(saved:append(t))
  lu.assertNotStrContains(stored.json:match "[^/]*$":sub(1, 1), "-")
  each_backend(function(sb)
    assert(sb:write("-x", "bytes"))
    lu.assertEquals(sb:read "-x", "bytes")
    lu.assertEquals(assert(sb:exec({ "cat", "./-x" }, { cwd = sb.workspace })).stdout, "bytes")
    lu.assertEquals(assert(sb:exec "-x").exit_code, 127)
    assert(sb:remove "-x")
  end)
  fs.remove(dir, true)
end

return M

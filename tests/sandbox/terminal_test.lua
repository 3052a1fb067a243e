--- Programs that want a terminal: an interpreter that is asked, a shell with job control, a terminal of its user.
local ab = require "agentbox"
local lu = require "luaunit"

local M = {}

local sb

function M.setUp() sb = assert(ab.sandbox.create {}) end

function M.tearDown() sb:close() end

local function terminal(command, opts)
  local all = { pty = true }
  for key, value in pairs(opts or {}) do all[key] = value end
  return assert(sb:spawn(command, all))
end

local function ask(process, text, answer)
  local said, problem = process:ask(text, { until_text = answer, timeout_s = 30 })
  lu.assertNotNil(said, ("no %q: %s"):format(answer, problem and (problem.partial or problem.msg) or ""))
  return said
end

function M.test_an_interpreter_is_asked_interrupted_and_ended()
  local python <close> = terminal { "python3", "-q" }
  lu.assertNotNil(python:read { until_text = ">>> ", timeout_s = 30 })
  lu.assertStrContains(ask(python, "6*7\n", ">>> "), "42")
  lu.assertStrContains(ask(python, "import sys; sys.stdin.isatty(), sys.stdout.isatty()\n", ">>> "), "(True, True)")
  -- The loop says that it runs, in words that are not those typed.
  ask(python, "while print('go' + 'es') or True: pass\n\n", "goes")
  ask(python, "\3", "KeyboardInterrupt")
  ask(python, "'sti' + 'll'\n", "'still'")
  ask(python, "import os; os._exit(9)\n", "\r\n")
  lu.assertEquals(assert(python:wait(30)).exit_code, 9)
end

function M.test_a_shell_has_its_jobs()
  local bash <close> = terminal({ "bash", "--norc", "-i" }, { env = { PS1 = "$ " } })
  ask(bash, "echo $-\n", "$ ")
  ask(bash, "sleep 299; echo [$?]\n", "[$?]\r\n")
  -- The job in front is stopped once it has the terminal: typed before that, the key would be the shell's.
  while not assert(sb:exec "cat /proc/[0-9]*/comm 2>/dev/null").stdout:find("sleep", 1, true) do ab.async.sleep(0.01) end
  ask(bash, "\26", "Stopped")
  lu.assertStrContains(ask(bash, "jobs; echo e'n'd\n", "end"), "sleep 299")
  ask(bash, "kill -9 %1; exec sh -c 'exit 5'\n", "\n") -- exit would ask about the job first
  lu.assertEquals(assert(bash:wait(30)).exit_code, 5)
end

function M.test_a_size_asked_for_at_once_is_the_terminals()
  local sh <close> = terminal("sleep 0.2; stty size", { rows = 3, cols = 4 })
  sh:resize(70, 170)
  lu.assertNotNil(sh:read { until_text = "70 170", timeout_s = 30 })
  for _, size in ipairs { { 0, 1 }, { 1, 65536 }, { 1.5, 1 }, { "1", 1 } } do
    lu.assertErrorMsgContains("rows and cols", sh.resize, sh, size[1], size[2])
  end
  lu.assertErrorMsgContains("rows", sb.spawn, sb, "true", { pty = true, rows = 65536 })
end

function M.test_a_terminal_belongs_to_its_user()
  if sb._raw:user_count() == 1 then return end
  local sh <close> = terminal("echo by name >$(tty); stat -c 'owner %u' $(tty)", { user = 1000 })
  lu.assertNotNil(sh:read { until_text = "by name", timeout_s = 30 })
  lu.assertNotNil(sh:read { until_text = "owner 1000", timeout_s = 30 })
end

function M.test_a_slow_reader_stops_the_program_and_loses_nothing()
  local sh <close> = terminal("head -c 300000 /dev/zero | tr '\\0' y", { max_output_bytes = 4096 })
  local total = 0
  while true do
    local bytes = sh:read { timeout_s = 30 }
    if not bytes then break end
    total = total + #bytes
  end
  lu.assertEquals(total, 300000)
end

return M

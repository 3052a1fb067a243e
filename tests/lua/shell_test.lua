--- The tool of a shell that stays: what a model reads, and that one shell is its whole rollout's. What the shell itself
--- promises is in lua/stdlib/conform/shells.lua.
local json = require "agentbox.json"
local lu = require "luaunit"
local sandbox = require "agentbox.sandbox"
local test = require "agentbox.test"
local tool = require "agentbox.tool"

local M = {}
local sb

function M.setUp()
  local problem
  sb, problem = sandbox.create {}
  if not sb then test.skip("no native sandbox here: " .. problem.msg) end
end

function M.tearDown() if sb then sb:close() end end

local function session()
  local set = assert(tool.select { mode = { "persistent_shell" } })
  local ctx = { sandbox = sb, workspace = "/workspace", time_left = function() return 30 end }
  return function(command, timeout_s)
    local call = { id = "c", type = "function", ["function"] = {
      name = "persistent_shell", arguments = json.encode { command = command, timeout_s = timeout_s },
    } }
    local result = set:run(ctx, { call }, 60)[1]
    lu.assertNil(result.infra)
    return result.text, result
  end, set
end

function M.test_what_one_call_sets_the_next_one_finds()
  local call, set = session()
  lu.assertEquals((call "mkdir d; cd d; x=1"), "exit_code=0")
  local text, result = call "pwd; echo $x; false"
  lu.assertEquals(text, "exit_code=1\n--- stdout ---\n/workspace/d\n1\n")
  lu.assertEquals({ result.is_error, result.facts.exit }, { true, 1 })
  lu.assertEquals(set:close(), {})
end

function M.test_the_end_of_the_shell_is_said()
  local call = session()
  lu.assertStrContains((call "exit 3"), "exit_code=3\nThe shell has ended")
  lu.assertEquals((call "pwd"), "exit_code=0\n--- stdout ---\n/workspace\n")
  lu.assertNotStrContains((call("sleep 300", 0.3)), "The shell has ended")
  local text, result = call("while :; do :; done", 0.3)
  lu.assertStrContains(text, "timed_out=true")
  lu.assertStrContains(text, "The shell has ended")
  lu.assertEquals(result.facts.timed_out, true)
end

function M.test_what_cannot_be_run_is_said()
  local call = session()
  lu.assertStrContains((call "echo 'open"), "matching")
  lu.assertStrContains((call "a\0b"), "NUL")
  lu.assertStrContains((call("true", 0)), "more than 0")
end

function M.test_two_at_once_are_refused()
  local async = require "agentbox.async"
  local sh <close> = assert(sb:shell())
  local first = async.spawn(function() return sh:run "sleep 0.3; echo first" end)
  async.yield()
  lu.assertErrorMsgContains("another command", sh.run, sh, "true")
  local _, out = first:join(30)
  lu.assertEquals(out.output, "first\n")
  lu.assertErrorMsgContains("unknown", sh.run, sh, "true", { timeout = 1 })
end

-- Symptom: on a busy machine the kill of a command took jobs along that earlier ones had left.
function M.test_an_older_job_lives_however_late_the_engine_answers()
  local async = require "agentbox.async"
  local slow = true
  local function spawn(_, ...)
    local process, problem = sb:spawn(...)
    if not process then return nil, problem end
    local own = { read = function(_, opts)
      local text, bad = process:read(opts)
      if slow then async.sleep(1) end
      slow = false
      return text, bad
    end }
    return setmetatable(own, { __index = function(_, key) return function(_, ...) return process[key](process, ...) end end,
      __close = function() process:close() end })
  end
  local late = setmetatable({ spawn = spawn }, { __index = function(_, key) return sb[key] end })
  local sh <close> = assert(sb:shell())
  sh._sandbox = late
  assert(sh:run "x=kept; sleep 297 & echo")
  sb:exec "sleep 0.3"
  local out = assert(sh:run("sleep 299", { timeout_s = 0.3 }))
  lu.assertEquals({ out.timed_out, out.ended, slow }, { true, false, false })
  lu.assertEquals(assert(sh:run "echo $x; jobs -p | wc -l").output, "kept\n1\n")
end

-- What a command started is told by its age, and on a busy machine it takes long until somebody looks.
function M.test_a_command_is_killed_however_late_its_killer_starts()
  local async = require "agentbox.async"
  local late = setmetatable({}, { __index = function(_, key)
    if key ~= "exec" and key ~= "spawn" then return sb[key] end
    return function(_, ...)
      async.sleep(0.3)
      return sb[key](sb, ...)
    end
  end })
  local sh <close> = assert(require "agentbox.shell".open(late))
  assert(sh:run "x=kept; sleep 297 & echo")
  sb:exec "sleep 0.5"
  local out = assert(sh:run("sh -c 'sleep 298 & sleep 299'", { timeout_s = 2 }))
  lu.assertEquals({ out.timed_out, out.ended }, { true, false })
  lu.assertEquals(assert(sh:run "echo $x; jobs -p | wc -l").output, "kept\n1\n")
  lu.assertEquals(assert(sb:exec "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'sleep 29[0-9]'").stdout, "sleep 297\n")
end

-- Whoever writes to a file keeps its other writers waiting: here the engine's loop, with all that it does.
function M.test_nobody_inside_writes_to_the_script_of_a_shell()
  assert(sb:write("bin/bash", "#!/bin/sh\ngrep flags /proc/self/fdinfo/0 >/tmp/flags\nexec /bin/bash \"$@\"\n", { mode = 493 }))
  local sh <close> = assert(sb:shell { env = { PATH = "/workspace/bin:/usr/bin:/bin" } })
  local out = assert(sh:run [[
for fd in /proc/$$/fd/*; do
  case $(readlink $fd) in *memfd*) (exec 3<>$fd) 2>/dev/null && echo opened $fd; chmod 666 $fd 2>/dev/null && echo changed $fd ;; esac
done]])
  lu.assertEquals(out.output, "")
  local flags = assert(sb:read "/tmp/flags"):match "%d+"
  lu.assertEquals((tonumber(flags, 8) or 1) & 3, 0, "not for reading only: " .. flags)
end

return M

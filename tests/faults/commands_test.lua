--- Commands: children left behind, clocks, stdin, arguments, many at once, sandboxes that died, processes of others
--- (faults B01, B07, B16, B18, B22, B25, B30, B50, B53), on every backend.
local async = require "agentbox.async"
local fs = require "agentbox.fs"
local lu = require "luaunit"
local rand = require "agentbox.sys.rand"

local live = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/live.lua")

local M = { setUp = live.need_native }

local function each_backend(check)
  for _, backend in ipairs(live.BACKENDS) do
    local sb <close> = live.sandbox(backend)
    check(sb, backend)
  end
end

-- ---------------------------------------------------------------- F01

function M.test_b01_a_timeout_leaves_nothing_of_the_command_alive()
  each_backend(function(sb)
    local mark = "zq" .. rand.uuid4()
    local command = ("for i in 1 2 3; do sh -c 'sleep 300; : %s' & done; wait"):format(mark)
    lu.assertIsTrue(assert(sb:exec(command, { timeout_s = 0.5 })).timed_out)
    -- At once, and not soon: the outcome is given when they are dead.
    lu.assertEquals(live.count(sb, mark), 0)
  end)
end

function M.test_b07_setup_agent_and_verifier_have_clocks_of_their_own()
  local t = live.run({ live.sh("echo begun; sleep 60", 0.2), live.sh "test -f ok && echo seen", "ok" }, { task = {
    task_id = "t", description = "d", setup_commands = { "sleep 0.6; touch ok" }, verifier = { command = "sleep 0.6; test -f ok" },
  } })
  lu.assertEquals(t.final_status, "success", t.error)
  lu.assertStrContains(t.messages[4].content, "timed_out=true")
  lu.assertStrContains(t.messages[4].content, "begun")
  lu.assertStrContains(t.messages[6].content, "seen")
end

-- ---------------------------------------------------------------- F03

function M.test_b16_stdin_is_empty_unless_it_is_given()
  each_backend(function(sb)
    local out = assert(sb:exec("cat > f; echo done; read x; echo $?; sh; echo $?", { timeout_s = 30 }))
    lu.assertEquals({ out.timed_out, out.stdout }, { false, "done\n1\n0\n" })
    lu.assertEquals(sb:read "f", "")
  end)
end

function M.test_b18_large_arguments_arrive_or_are_refused_before_anything_runs()
  each_backend(function(sb, backend)
    local out = assert(sb:exec { "sh", "-c", "printf %s \"$1\" | wc -c", "x", ("a"):rep(100000) })
    lu.assertEquals(tonumber(out.stdout), 100000)
    if backend ~= "none" then -- whose commands are the host's kernel's to judge: an outcome
      local refused, problem = sb:exec { "sh", "-c", "touch ran", "x", ("a"):rep(300000) }
      lu.assertNil(refused)
      lu.assertEquals(problem.code, "toobig")
    end
    -- Text for a shell is text: it goes another way when it is long.
    assert(sb:write("long", ("b"):rep(5 << 20)))
    lu.assertEquals(tonumber(assert(sb:exec "wc -c < long").stdout), 5 << 20)
    lu.assertNil((sb:stat "ran"))
  end)
end

function M.test_b22_a_list_stays_a_list()
  local words = { "a b", "", "-z", "c  d", "$HOME", "\n", "e'f\"g", "*" }
  each_backend(function(sb)
    local out = assert(sb:exec { "sh", "-c", "printf '%s|' \"$#\" \"$@\"", "name", table.unpack(words) })
    lu.assertEquals(out.stdout, #words .. "|" .. table.concat(words, "|") .. "|")
  end)
end

-- ---------------------------------------------------------------- F04

function M.test_b25_each_of_many_commands_at_once_gets_its_own_outcome()
  each_backend(function(sb)
    local numbers = {}
    for i = 1, 64 do numbers[i] = i end
    local outs = async.each(numbers, function(i)
      return assert(sb:exec(("echo %d; echo %d >&2; cat; exit %d"):format(i, i, i), { stdin = "in" .. i }))
    end, { limit = 32 })
    for i, out in ipairs(outs) do
      lu.assertEquals({ out.stdout, out.stderr, out.exit_code }, { ("%d\nin%d"):format(i, i), i .. "\n", i })
    end
  end)
end

-- ---------------------------------------------------------------- F05

-- What kills a sandbox from outside, as a machine without memory does.
local KILLS = {
  native = function(sb) assert(os.execute("kill -9 " .. sb._raw:pid())) end,
  engine = function(sb, backend)
    assert(require("agentbox.backends." .. backend).api():call("POST", "/containers/" .. sb.id .. "/kill"))
  end,
}

function M.test_b30_a_sandbox_that_died_stays_dead()
  for _, backend in ipairs(live.BACKENDS) do
    local kill = KILLS[live.is_container(backend) and "engine" or backend]
    if kill then
      local sb <close> = live.sandbox(backend)
      assert(sb:exec "echo mine > /workspace/f")
      kill(sb, backend)
      for _ = 1, 3 do
        local out, problem = sb:exec "cat /workspace/f"
        lu.assertNil(out, "never in a fresh one")
        lu.assertEquals(problem.code, "sandbox")
      end
      -- Of a native sandbox the files are still there; of a container nothing is.
      local left = sb:read "f"
      lu.assertEquals(left, backend == "native" and "mine\n" or nil)
    end
  end
end

-- ---------------------------------------------------------------- F08

function M.test_b50_no_signal_from_inside_reaches_anybody_else()
  for _, backend in ipairs(live.BACKENDS) do
    if backend ~= "none" then -- there it would reach everybody
      local sibling <close> = live.sandbox(backend)
      local server <close> = assert(sibling:spawn "echo up; exec cat")
      lu.assertEquals(server:read(), "up\n")
      local sb <close> = live.sandbox(backend)
      local out = assert(sb:exec("pkill -f [a]gentbox; pkill -f [p]ython; pkill -9 -x cat; ls /proc | grep -c '^[0-9]'; kill -9 -1",
        { timeout_s = 20 }))
      lu.assertTrue(tonumber(out.stdout) < 10, out.stdout)
      lu.assertEquals(assert(sb:exec "echo alive").stdout, "alive\n")
      assert(server:write "still here\n")
      lu.assertEquals(server:read { timeout_s = 10 }, "still here\n")
    end
  end
end

function M.test_b53_what_a_task_says_is_never_read_by_a_shell()
  local evil = "x; touch /tmp/pwn-@; $(touch /tmp/pwn-@) `touch /tmp/pwn-@`"
  local mark = rand.uuid4()
  evil = evil:gsub("@", mark)
  local file = evil:gsub("/", "_")
  local t = live.run({ live.sh "ls -d /tmp/pwn-* /workspace/pwn-* 2>/dev/null; echo looked", "done" }, { task = {
    task_id = "t " .. evil, description = evil, files = { [file] = "x" }, metadata = { base_commit = evil },
    env = { EVIL = evil }, artifacts = { file }, params = { base_commit = evil },
    verifier = { command = "test -z \"$(ls -d /tmp/pwn-* 2>/dev/null)\" && test \"$EVIL\" != ''" },
  } })
  lu.assertEquals(t.final_status, "success", t.error)
  lu.assertEquals(t.messages[4].content, "exit_code=0\n--- stdout ---\nlooked\n")
  lu.assertNil((fs.stat("/tmp/pwn-" .. mark)))
end

return M

--- conform/commands.lua: commands that one waits for.
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local time = require "agentbox.sys.time"

local TREE = "kills"

-- How many processes inside have a command line that begins so; images without ps are common.
local function count(t, line)
  return t:sh({ "/bin/sh", "-c", [[
    n=0
    for d in /proc/[0-9]*; do tr '\0' ' ' <$d/cmdline 2>/dev/null | grep -q "^$1" && n=$((n+1)); done
    echo $n]], "count", line }).stdout:match "%d+"
end

return {
  { id = "exec.status", what = "a command's exit status, stdout and stderr", run = function(t)
    local out = t:sh "echo out; echo err >&2; exit 7"
    t.equal(out.exit_code, 7, "status")
    t.equal(out.stdout, "out\n", "stdout")
    t.equal(out.stderr, "err\n", "stderr")
    t.equal(out.timed_out, false, "timed_out")
  end },
  { id = "exec.signal", what = "death by a signal is told with its name", run = function(t)
    local out = t:sh "kill -TERM $$"
    t.equal(out.signal, "SIGTERM", "signal")
    t.equal(out.exit_code, 143, "status")
  end },
  { id = "exec.words", what = "words reach a program unchanged, without a shell", run = function(t)
    t.equal(t:sh({ "/bin/echo", "$HOME;`id` \"x\"", "" }).stdout, "$HOME;`id` \"x\" \n", "words")
  end },
  { id = "exec.missing", what = "a program that is not there is status 127 and says so", run = function(t)
    local out = t:sh { "no-such-program" }
    t.equal(out.exit_code, 127, "status")
    t.truth(out.stderr:find "No such file", "stderr names the reason")
  end, differs = { none = "the host's spawn fails before there is a process" } },
  { id = "exec.not-a-program", what = "a file that cannot be executed is status 126", run = function(t)
    t.truth(t.sb:write("plain", "x"), "write")
    t.equal(t:sh({ "./plain" }).exit_code, 126, "status")
  end, differs = { none = "the host's spawn fails before there is a process" } },
  { id = "exec.environment", what = "variables: the sandbox's, the command's, taken away", run = function(t)
    t.sb = t:another { env = { A = "1", B = "2" } }
    t.equal(t:sh("echo $A$B$C", { env = { B = "3", C = "4" } }).stdout, "134\n", "overlaid")
    t.equal(t:sh("echo ${A-gone}", { env = { A = false } }).stdout, "gone\n", "taken away")
  end },
  { id = "exec.cwd", what = "commands start in the workspace, or where it is said", run = function(t)
    t.equal(t:sh("pwd").stdout, t.sb.workspace .. "\n", "workspace")
    t.truth(t.sb:mkdir "sub", "mkdir")
    t.equal(t:sh("pwd", { cwd = "sub" }).stdout, t.sb.workspace .. "/sub\n", "below it")
  end, differs = { none = "paths are the host's" } },
  { id = "exec.stdin-empty", what = "without stdin a reader sees its end at once", run = function(t)
    t.equal(t:sh("cat; echo done", { timeout_s = 10 }).stdout, "done\n", "stdout")
  end },
  { id = "exec.stdin", what = "10 MB of stdin arrive unchanged", run = function(t)
    local text = ("0123456789abcde\n"):rep(640000)
    local out = t:sh("sleep 0.1; tee copy | wc -c", { stdin = text, timeout_s = 60 })
    t.equal(tonumber(out.stdout), #text, "bytes counted inside")
    t.equal(t.sb:read "copy", text, "the copy")
  end },
  { id = "exec.stdin-unread", what = "stdin that nobody reads is no error", run = function(t)
    t.equal(t:sh("exec <&-; exit 3", { stdin = ("x"):rep(2000000), timeout_s = 30 }).exit_code, 3, "status")
  end },
  { id = "exec.bytes", what = "output is bytes: zeros and invalid UTF-8 arrive", run = function(t)
    t.equal(t:sh([[printf '\377\376\000A']]).stdout, "\xff\xfe\0A", "stdout")
  end },
  { id = "exec.cap", what = "beyond the cap the head is kept, the rest counted, the command ends", run = function(t)
    local out = t:sh("head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2; exit 4", { max_output_bytes = 1000 })
    t.equal(#out.stdout, 1000, "kept")
    t.equal(out.stdout_dropped, 4999000, "dropped")
    t.equal(out.truncated, true, "truncated")
    t.equal(out.stderr, "end\n", "stderr")
    t.equal(out.exit_code, 4, "status")
  end },
  { id = "exec.big-argument", what = "arguments are passed up to the kernel's limit, and refused beyond it before "
      .. "anything runs", run = function(t)
    local out = t:sh { "sh", "-c", "printf %s \"$1\" | wc -c", "x", ("a"):rep(120000) }
    t.equal(out.stdout:match "%d+", "120000", "length")
    local problem
    out, problem = t.sb:exec { "sh", "-c", "touch ran", "x", ("a"):rep(300000) }
    t.equal(out, nil, "a longer one")
    t.code(problem, "toobig", "a longer one")
    t.equal(t.sb:stat "ran", nil, "nothing ran")
  end, differs = { none = "the kernel refuses it: the outcome says so" } },
  { id = "exec.many-arguments", what = "a megabyte of arguments", run = function(t)
    local words = { "sh", "-c", "echo $#", "x" }
    for i = 1, 10000 do words[#words + 1] = ("w%06d"):format(i):rep(14) end
    t.equal(t:sh(words).stdout, "10000\n", "how many arrived")
  end },
  { id = "exec.timeout", what = "when its time is over everything that a command started is dead, and what it printed "
      .. "is kept", needs = "tree", run = function(t)
    local out = t:sh([[echo early; for i in 1 2 3; do sleep 321 & done; (setsid sleep 321 &); wait]], { timeout_s = 1 })
    t.equal(out.timed_out, true, "timed_out")
    t.equal(out.exit_code, -1, "status")
    t.equal(out.stdout, "early\n", "stdout")
    t.equal(count(t, "sleep 321"), "0", "processes left")
  end },
  { id = "exec.done-at-leader", what = "a command is done when its main process is, whoever still holds its stdout",
    run = function(t)
      local began = time.monotonic()
      t.equal(t:sh("sleep 30 & echo started", { timeout_s = 20 }).stdout, "started\n", "stdout")
      t.truth(time.monotonic() - began < 10, "it did not wait for the one in the background")
      t.truth(t.sb:kill_all(), TREE)
    end },
  { id = "exec.cancel", what = "cancelling the wait kills the command and what it started", needs = "tree",
    run = function(t)
    local sb = t.sb
    local waiting = fiber.spawn(function() sb:exec "yes cancelled | cat | cat >/dev/null" end)
    fiber.sleep(0.3)
    waiting:cancel()
    waiting:join()
    local left
    for _ = 1, 100 do
      left = count(t, "yes cancelled")
      if left == "0" then return end
      fiber.sleep(0.02)
    end
    t.equal(left, "0", "processes left")
  end },
  { id = "exec.together", what = "32 commands at once do not mix", run = function(t)
    local sb, jobs = t.sb, {}
    for i = 1, 32 do
      local words = { "sh", "-c", ("cat; echo %d; exit %d"):format(i, i) }
      jobs[i] = function() return sb:exec(words, { stdin = "in" .. i .. "\n" }) end
    end
    local results = async.all(jobs)
    for i = 1, 32 do
      local out = results[i]
      t.equal(out and out.stdout, ("in%d\n%d\n"):format(i, i), "stdout of command " .. i)
      t.equal(out.exit_code, i, "status of command " .. i)
    end
  end },
  { id = "exec.usage", what = "processor time and memory of a command are measured", run = function(t)
    local out = t:sh "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    t.truth(out.usage.cpu_s > 0.001, "cpu_s")
    t.truth(out.usage.max_rss_bytes > 100000, "max_rss_bytes")
  end, differs = { none = "not measured" } },
  { id = "exec.user", what = "a command as another user", needs = "users", run = function(t)
    if t.sb._raw:user_count() == 1 then return end -- an ordinary user without ranges: refused, and documented
    t.equal(t:sh("id -u; id -g", { user = "1000:1001" }).stdout, "1000\n1001\n", "ids")
    local out, problem = t.sb:exec("true", { user = "nobody-like-this" })
    t.equal(out, nil, "a user who is not there")
    t.code(problem, "notfound", "a user who is not there")
  end },
  { id = "kill_all", what = "kill_all leaves nothing alive", needs = "tree", run = function(t)
    t:sh "sleep 654 & (setsid sleep 654 &); sleep 0.1"
    t.truth(t.sb:kill_all(), TREE)
    t.equal(count(t, "sleep 654"), "0", "processes left")
  end },
}

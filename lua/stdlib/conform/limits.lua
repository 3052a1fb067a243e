--- conform/limits.lua: limits are kept, and told apart from failure.
local sandbox = require "agentbox.sandbox"

local function has(t, controller)
  if (t.spec.backend or "native") ~= "native" then return true end
  return require "agentbox.sys.sandbox".probe().cgroup[controller]
end

return {
  { id = "limit.memory", what = "memory: the command is killed, told as oom; the sandbox lives", needs = "limits",
    run = function(t)
    if not has(t, "memory") then return end -- a machine without the controller: documented
    t.sb = t:another { limits = { memory_mb = 64 } }
    local out = t:sh("head -c 200000000 /dev/zero | tail -c 150000000 | wc -c", { timeout_s = 60 })
    t.equal(out.oom, true, "oom")
    out = t:sh "echo alive"
    t.equal(out.stdout, "alive\n", "afterwards")
    t.equal(out.oom, false, "oom of the next command")
  end },
  { id = "limit.kill-is-no-oom", what = "kill -9 is not told as oom", run = function(t)
    local out = t:sh "kill -9 $$"
    t.equal(out.signal, "SIGKILL", "signal")
    t.equal(out.oom, false, "oom")
  end },
  { id = "limit.pids", what = "processes: a fork bomb ends, the sandbox lives", needs = "limits", run = function(t)
    t.sb = t:another { limits = { pids_limit = 40 } }
    local out = t:sh([[i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null; echo end]], { timeout_s = 20 })
    t.truth(out.exit_code ~= 0 or out.stdout == "end\n", "it ended")
    t.truth(t.sb:kill_all(), "kill_all")
    t.equal(t:sh("echo alive").stdout, "alive\n", "afterwards")
  end },
  { id = "limit.files", what = "open files", needs = "limits", run = function(t)
    t.sb = t:another { limits = { nofile = 64 } }
    t.equal(t:sh("ulimit -n").stdout, "64\n", "the limit inside")
  end },
  { id = "limit.disk", what = "disk: what is too much is refused with ENOSPC, and removing helps", needs = "limits",
    run = function(t)
    t.sb = t:another { limits = { disk_mb = 16 } }
    local out = t:sh("head -c 64000000 /dev/zero > big; echo $?; rm -f big; head -c 1000000 /dev/zero > small && echo fits",
      { timeout_s = 60 })
    t.truth(out.stdout:find "^[^0]", "writing 64 MB into 16 succeeded")
    t.truth(out.stdout:find "fits", "room after removing")
  end, differs = {
    docker = "the storage driver has no quotas (overlay2 has them on xfs with pquota)",
    podman = "the storage driver has no quotas (overlay has them on xfs with pquota)",
  } },
  { id = "limit.default", what = "limits hold when nothing is said", needs = "limits", run = function(t)
    t.equal(sandbox.DEFAULT_LIMITS.memory_mb, 512, "the documented default")
    local usage = t.truth(t.sb:usage(), "usage")
    if has(t, "pids") then t.truth(usage.pids and usage.pids >= 1 and usage.pids < 50, "pids are counted") end
  end },
}

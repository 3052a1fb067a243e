--- conform/confinement.lua: what a command must not be able to do. The attack list proper is tests/sandbox.
return {
  { id = "confine.pid1", what = "pid 1 cannot be killed from inside, nor all there is at once", needs = "confinement",
    run = function(t)
    t:sh "kill -9 1; kill -9 -1"
    t.equal(t:sh("echo alive").stdout, "alive\n", "afterwards")
  end },
  { id = "confine.pid1-stream", what = "what pid 1 holds cannot be opened", needs = "confinement", run = function(t)
    local out = t:sh [[
      for f in /proc/1/fd/*; do ( : > $f ) 2>/dev/null && echo $f; ( : < $f ) 2>/dev/null && echo $f; done
      cat /proc/1/environ 2>/dev/null; true]]
    t.equal(out.stdout, "", "opened")
  end },
  { id = "confine.broken-tools", what = "a sandbox without a shell gives outcomes, not hangs", needs = "confinement",
    run = function(t)
    t:sh "rm -rf /bin/sh /usr/bin/sh /bin/dash /usr/bin/dash /bin/busybox"
    if t.sb:stat "/bin/sh" then return end -- an ordinary user's sandbox cannot change what the host's /usr holds
    local out = t:sh("ls", { timeout_s = 20 })
    t.equal(out.exit_code, 127, "status")
    t.truth(t.sb:write("still", "there") and t.sb:read "still" == "there", "files work")
  end },
  { id = "confine.privileges", what = "no new privileges, a system call filter, no raw sockets or devices", needs = "confinement",
    run = function(t)
      local out = t:sh [[
        grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; mknod dev c 1 5 2>/dev/null && echo mknod
        mount -t tmpfs x /mnt 2>/dev/null && echo mount; true]]
      t.equal(out.stdout, "NoNewPrivs:\t1\nSeccomp:\t2\n", "status")
    end },
  { id = "confine.kernel", what = "kernel settings cannot be written", needs = "confinement", run = function(t)
    t:sh "echo agentbox > /proc/sys/kernel/hostname 2>/dev/null; echo x > /proc/sys/kernel/core_pattern 2>/dev/null; true"
    local pattern = require "agentbox.sys.fs".read("/proc/sys/kernel/core_pattern", 4096)
    t.truth(pattern == nil or pattern ~= "x\n", "core_pattern of the host")
  end },
  { id = "confine.network", what = "network none: only the loopback", needs = "network", run = function(t)
    local out = t:sh "cat /proc/net/dev | tail -n +3 | sed 's/:.*//; s/ //g'"
    t.equal(out.stdout, "lo\n", "interfaces")
  end },
  { id = "confine.allow", what = "a network with a list: the rest is refused at once, and told", needs = "network",
    differs = { docker = "a list is refused: none or full", podman = "a list is refused: none or full" }, run = function(t)
    local sb = t:another { network = { allow = { "conform.test:443" }, hosts = { ["conform.test"] = "127.0.0.1" } } }
    local out = assert(sb:exec("command -v bash && bash -c ': < /dev/tcp/8.8.8.8/9' 2>&1", { timeout_s = 20 }))
    if out.stdout == "" then return end -- an image without bash
    t.truth(out.stdout:find "refused", "refused")
    local denied = sb:denied()[1]
    t.truth(denied and denied.address == "8.8.8.8" and denied.port == 9, "told")
  end },
  { id = "confine.zombies", what = "orphans are reaped", needs = "confinement", run = function(t)
    t:sh "for i in 1 2 3 4 5 6 7 8; do (sh -c 'sleep 0.05 &' &); done; sleep 0.4"
    local out = t:sh [[
      n=0; for s in /proc/[0-9]*/stat; do case "$(cat $s 2>/dev/null)" in *') Z '*) n=$((n+1));; esac; done; echo $n]]
    t.equal(out.stdout, "0\n", "zombies")
  end },
  { id = "confine.host", what = "processes of the host are not seen", needs = "confinement", run = function(t)
    t.truth(tonumber(t:sh("ls -d /proc/[0-9]* | wc -l").stdout:match "%d+") < 12, "few processes")
  end },
}

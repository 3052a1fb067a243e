--- The attacks of tests/sandbox/attacks.lua, each in a sandbox of ours, in a container as `docker run` makes it when nothing is said,
--- and under bubblewrap; the table of docs/security.md, attack by attack.
---
---     build/agentbox script bench/attacks.lua [IMAGE] [--write] [--only N]
---
--- As root, with bwrap, setpriv and a Docker daemon that has IMAGE (python:3.12-slim-bookworm unless said): python3 is what the attacks
--- are made of. The others run within bounds of this machine's own (3 GiB, 2,000 processes, 60 s), which they do not set themselves;
--- what only these stopped counts as open. bubblewrap is started by an ordinary user: started by root it keeps root's rights.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local os_ = require "agentbox.sys.os"

local here = arg[0]:match "^(.*/)" or "./"
package.path = here .. "?.lua;" .. package.path
local attacks = dofile(here .. "../tests/sandbox/attacks.lua")
local baits = dofile(here .. "../tests/support/bait.lua")
local rules = require "attack_rules"

local LIMITS = { memory_mb = 512, pids_limit = 256, cpu_count = 1, disk_mb = 256, inodes = 65536 }
local BOUND_MB, BOUND_PIDS, BOUND_S, ORDINARY = 3072, 2000, 60, 1000
local GROUP = "attacks-bound-" .. os_.pid()
local LABEL = "agentbox-attacks=" .. os_.pid()
local PAGE, HEADING = here .. "../docs/security.md", "## Attack by attack"

local options = { image = "python:3.12-slim-bookworm" }
do
  local at = 1
  while arg[at] do
    if arg[at] == "--write" then options.write = true
    elseif arg[at] == "--only" then at, options.only = at + 1, tonumber(arg[at + 1])
    else options.image = arg[at] end
    at = at + 1
  end
end

local host = assert(ab.sandbox.create { backend = "none" })

local function sh(command, stdin)
  return assert(host:exec(command, { timeout_s = BOUND_S + 60, stdin = stdin }))
end

local bait = baits.open()
baits.serve(bait, host)

-- ---------------------------------------------------------------- the three

local function text_of(attack) return baits.text(bait, attack) end

local function native(attack)
  local sb <close> = assert(ab.sandbox.create { limits = LIMITS })
  local out, problem = sb:exec(text_of(attack), { timeout_s = attack.timeout_s or BOUND_S })
  if not out then return { said = tostring(problem), code = -1 } end
  -- A timeout that left something alive would be seen here.
  local alive = sb:exec "ls -d /proc/[0-9]* | wc -l"
  return { said = out.stdout .. out.stderr, code = out.exit_code, left = attack.timed_out and tonumber(alive.stdout) > 5 }
end

-- Whether a command goes on printing something: what is being torn down has two seconds.
local function stays(command)
  for _ = 1, 20 do
    if sh(command).stdout == "" then return false end
    ab.async.sleep(0.1)
  end
  return true
end

local function docker(attack)
  local seconds = attack.timeout_s or BOUND_S
  local out = sh(("timeout -k 2 %d docker run --rm --label %s -m %dm --memory-swap %dm --pids-limit %d --entrypoint sh %s -c \"$(cat)\" 2>&1")
    :format(seconds, LABEL, BOUND_MB, BOUND_MB, BOUND_PIDS, options.image), text_of(attack))
  local list = ("docker ps -q --filter label=%s"):format(LABEL)
  local left = stays(list)
  sh(("docker rm -f $(docker ps -aq --filter label=%s) >/dev/null 2>&1"):format(LABEL))
  return { said = out.stdout, code = out.exit_code, left = left }
end

-- Shell for the bound around bubblewrap: control groups of either version.
local BOUNDED = [==[
for d in /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup; do
  [ -w $d/cgroup.procs ] && [ "$d/" != /sys/fs/cgroup/ -o -e $d/cgroup.controllers ] || continue
  mkdir -p $d/@G
  for pair in memory.limit_in_bytes=@B memory.max=@B pids.max=@P; do
    [ -e $d/@G/${pair%=*} ] && echo ${pair#*=} > $d/@G/${pair%=*}
  done
  echo $$ > $d/@G/cgroup.procs
done
]==]

local function groups(what)
  return (([==[for d in /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup; do [ -e $d/@G/cgroup.procs ] && ]==] .. what ..
    "; done; true"):gsub("@G", GROUP))
end

local BWRAP = "bwrap --unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 "
  .. "--symlink usr/bin /bin --symlink usr/sbin /sbin --proc /proc --dev /dev --tmpfs /tmp --dir /workspace --chdir /workspace"

local function bubblewrap(attack)
  local bound = BOUNDED:gsub("@G", GROUP):gsub("@B", tostring(BOUND_MB << 20)):gsub("@P", tostring(BOUND_PIDS))
  local out = sh(bound .. ("text=$(cat); exec timeout -k 2 %d setpriv --reuid=%d --regid=%d --clear-groups %s sh -c \"$text\" 2>&1 </dev/null")
    :format(attack.timeout_s or BOUND_S, ORDINARY, ORDINARY, BWRAP), text_of(attack))
  local left = stays(groups "cat $d/@G/cgroup.procs")
  sh(groups "for p in $(cat $d/@G/cgroup.procs); do kill -9 $p; done")
  return { said = out.stdout, code = out.exit_code, left = left }
end

local OURS, DOCKER, BUBBLE = "agentbox", "Docker's default", "bubblewrap"
local COLUMNS = { { OURS, native }, { DOCKER, docker }, { BUBBLE, bubblewrap } }

-- ---------------------------------------------------------------- judging

-- The line that one of the patterns is in, or nil.
local function any(patterns, text)
  for _, pattern in ipairs(patterns) do
    pattern = pattern:gsub("@HOST@", (os_.hostname() or ""):gsub("%p", "%%%0"))
    local at, stop = text:find(pattern)
    if at then
      while at > 1 and text:sub(at - 1, at - 1) ~= "\n" do at = at - 1 end
      return text:sub(at, (text:find("\n", stop, true) or #text + 1) - 1)
    end
  end
end

local function first_line(text)
  text = (text:match "%S[^\n]*" or ""):gsub("[%c|`]", " "):gsub(bait.dir:gsub("%p", "%%%0"), "DIR")
  return #text > 48 and text:sub(1, 45) .. "..." or text
end

-- Why it went through, or nil.
local function why_open(rule, got, changed, column)
  if changed then return "the host was changed" end
  if got.said:find("CANARY\n", 1, true) then return "a file of the host was read" end
  if got.left and rule.left then return "what it started lives on" end
  if column ~= OURS and rule.bound and (got.code == 137 or got.code == 124) then return "no bound but ours" end
  if rule.capabilities then
    local mask = math.tointeger(tonumber(got.said:match "CapEff:%s*(%x+)" or "0", 16))
    return mask & rules.FAR_CAPABILITIES ~= 0 and "among them some that reach further" or nil
  end
  local line = rule.open and any(rule.open, got.said)
  if line then return first_line(line) end
  if rule.held and not any(rule.held, got.said) then return first_line(got.said) end
end

local function judge(attack, column, run)
  local rule = rules.OF[attack.n]
  if rule.own and column == DOCKER then return "its own process", true end
  local got = run(attack)
  local changed = false
  for name, value in pairs(baits.look(bait)) do changed = changed or value ~= bait.before[name] end
  if changed then baits.mend(bait) end
  local why = why_open(rule, got, changed, column)
  if not why then return "held", true end
  return ("**open**: %s"):format(why ~= "" and why or "nothing refused it"), false
end

-- ---------------------------------------------------------------- the table

local function version(command) return sh(command).stdout:match "[%d][%w.+~-]*" or "?" end

local function head()
  return ([[
Made by `build/agentbox script bench/attacks.lua IMAGE --write` (as root, with bwrap, setpriv and a Docker daemon) on Linux %s with Docker %s and bubblewrap %s.
Docker's column is `docker run IMAGE` as root inside, with nothing said about limits, users or capabilities; bubblewrap's is an ordinary user's `bwrap --unshare-all` with a
read-only `/usr` and file systems of memory. Both can be told to hold more; this is what holds when nobody did. They ran within bounds of the machine's own, 3 GiB and
2,000 processes: what only these stopped is open. "Held" is judged by what an attack printed and left on the host (`bench/attack_rules.lua`), and not by the words of a refusal; *its own
process*: the first process of a Docker container is the workload's, so that there is nothing of Docker's to attack. %d texts of the list are left out: they try what must function, or trouble nobody but whoever runs them.
]]):format(version "uname -r", version "docker version --format '{{.Server.Version}}'", version "bwrap --version",
    #attacks - (function() local n = 0 for _ in pairs(rules.OF) do n = n + 1 end return n end)())
end

local function rows()
  local lines, held = { "| | attack | agentbox | Docker's default | bubblewrap |", "| --- | --- | --- | --- | --- |" }, {}
  local count = 0
  for _, attack in ipairs(attacks) do
    if rules.OF[attack.n] and (not options.only or options.only == attack.n) then
      local cells = {}
      for i, column in ipairs(COLUMNS) do
        local fine
        cells[i], fine = judge(attack, column[1], column[2])
        held[i] = (held[i] or 0) + (fine and 1 or 0)
      end
      count = count + 1
      lines[#lines + 1] = ("| %d | %s | %s |"):format(attack.n, (attack.title:gsub("|", "/")), table.concat(cells, " | "))
      io.stderr:write(lines[#lines], "\n")
    end
  end
  lines[#lines + 1] = ("| | **held, of %d** | **%d** | **%d** | **%d** |"):format(count, held[1], held[2], held[3])
  return table.concat(lines, "\n") .. "\n", held[1] == count
end

local function clean()
  sh(groups "rmdir $d/@G")
  baits.close(bait)
end

local function main()
  assert(os_.uid() == 0, "the attacks are run by root: bubblewrap's alone as somebody else")
  assert(sh "command -v bwrap setpriv docker >/dev/null && docker version >/dev/null 2>&1".exit_code == 0, "bwrap, setpriv and a Docker daemon are needed")
  assert(sh("docker run --rm --entrypoint python3 " .. options.image .. " -V").exit_code == 0, options.image .. " has no python3, or is not there")
  local body, all_held = rows()
  local section = HEADING .. "\n\n" .. head() .. "\n" .. body
  if options.write then
    local page = assert(fs.read(PAGE, 1 << 20))
    local at = page:find("\n" .. HEADING .. "\n", 1, true)
    local behind = at and (page:find("\n## ", at + #HEADING, true) or #page)
    page = at and page:sub(1, at) .. section .. page:sub(behind) or page .. "\n" .. section
    assert(fs.write(PAGE, (page:gsub("\n+$", "\n"))))
  else
    io.stdout:write(section)
  end
  return all_held
end

local ok, result = xpcall(main, debug.traceback)
clean()
bait.server:close()
host:close()
if not ok then error(result, 0) end
os.exit(result and 0 or 1)

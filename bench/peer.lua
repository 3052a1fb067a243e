--- The programs beside which we are measured: a bare spawn on the host, bwrap, and docker if its server runs. They are
--- started on the host by backend `none`, which waits without blocking the engine.
local ab = require "agentbox"

local M = {}

local here = assert(ab.fs.realpath(arg[0]:match "^(.*)/[^/]*$" or "."))
local spawner = assert(ab.fs.realpath(here .. "/../build/release/bench/bench-spawn"))
local floor = assert(ab.fs.realpath(here .. "/../build/release/bench/bench-floor"))
local IMAGE, BOX = "agentbox-bench", "agentbox-bench-" .. tostring(os.time())

local function quote(words)
  local out = {}
  for i, word in ipairs(words) do out[i] = "'" .. word:gsub("'", "'\\''") .. "'" end
  return table.concat(out, " ")
end

local host

---@async
local function run(command)
  host = host or assert(ab.sandbox.create { backend = "none" })
  return assert(host:exec(command, { timeout_s = 600 }))
end

local function succeeds(command)
  return run(command .. " >/dev/null 2>&1").exit_code == 0
end

--- Microseconds of `count` runs, one after another.
---@async
---@param mode "wait"|"read"|"first"
---@param count integer
---@param argv string[]
---@return number[]
function M.time(mode, count, argv)
  local out = run(("%s %s %d %s"):format(spawner, mode, count, quote(argv)))
  assert(out.exit_code == 0, argv[1] .. " failed: " .. out.stderr)
  local samples = {}
  for line in out.stdout:gmatch "[^\n]+" do samples[#samples + 1] = tonumber(line) end
  return samples
end

--- What a program prints, on both streams.
---@async
function M.output(argv)
  local out = run(quote(argv))
  return out.stdout .. out.stderr
end

--- Runs per second of `argv` in `streams` streams.
function M.rate(argv, streams, total, clock)
  local began = clock()
  local each = total // streams
  assert(succeeds(("for i in $(seq %d); do %s wait %d %s & done; wait"):format(streams, spawner, each, quote(argv))))
  return each * streams / (clock() - began)
end

--- What the kernel alone asks for a sandbox (floor.c): microseconds of `count` of them, or nil where that needs rights.
---@return number[]?
function M.floor_us(count)
  local samples = {}
  for line in run(("%s run %d 2>/dev/null"):format(floor, count)).stdout:gmatch "[^\n]+" do samples[#samples + 1] = tonumber(line) end
  return #samples == count and samples or nil
end

--- The same for the kernel's memory: bytes of each of `count` that do nothing.
---@return number?
function M.floor_bytes(count)
  return tonumber((run(("%s idle %d 2>/dev/null"):format(floor, count)).stdout:match "%d+"))
end

M.BWRAP = { "bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
  "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--die-with-parent", "true" }
M.IMAGE = IMAGE
M.DOCKER_RUN = { "docker", "run", "--rm", "--network", "none", IMAGE, "/bin/true" }

function M.has_bwrap()
  return succeeds(quote(M.BWRAP))
end

--- An image of this machine's own sh, true, cat, sleep and what they link to; and a container that lives.
---@return boolean
function M.start_docker()
  if not succeeds "docker info" then return false end
  local files = "/bin/sh /bin/true /bin/cat /bin/sleep /bin/echo"
  local made = succeeds(([[
    set -e
    libs=$(ldd %s | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) { sub(/:$/, "", $i); print $i } }' | sort -u)
    tar -chf - --transform 's,^/,,' -P $libs | docker import - %s
    docker run -d --network none --name %s %s /bin/sleep 3600]]):format(files, IMAGE, BOX, IMAGE))
  return made
end

function M.stop_docker()
  succeeds(("docker rm -f %s; docker rmi %s"):format(BOX, IMAGE))
end

---@param ... string
---@return string[]
function M.docker_run(...)
  return { "docker", "run", "--rm", "--network", "none", IMAGE, ... }
end

---@param ... string
---@return string[]
function M.docker_exec(...)
  return { "docker", "exec", BOX, ... }
end

---@param path string
---@return string[] into, string[] out_of
function M.docker_cp(path)
  return { "docker", "cp", "-q", path, BOX .. ":/file" }, { "docker", "cp", "-q", BOX .. ":/file", path .. ".back" }
end

--- What docker does for a fork: the container's changes as an image, and a container of it that runs `true`.
---@return string[]
function M.docker_fork()
  return { "sh", "-c", ("i=$(docker commit %s) && docker run --network none --rm $i /bin/true && docker rmi $i"):format(BOX) }
end

--- Changes that many files of the container.
function M.docker_change(count)
  return succeeds(("docker exec %s /bin/sh -c 'i=0; while [ $i -lt %d ]; do echo $i > /changed$i; i=$((i+1)); done'"):format(BOX, count))
end

--- The python of the reference, or nil: then its rows stay without it.
---@return string?
function M.reference()
  local said = M.output { "sh", here .. "/reference.sh" }
  local python = said:match "([^\n]+)\n*$" or ""
  if ab.fs.exists(python) then return python end
  io.stderr:write("  the reference (agentbox-rl 0.2.1) is not measured: ", said, "\n")
end

--- The number that a program prints last.
---@param argv string[]
---@return number
function M.number(argv)
  local said = M.output(argv)
  return tonumber(said:match "(%d+)\n*$") or error(table.concat(argv, " ") .. " failed: " .. said)
end

--- Lets go of the host.
function M.close()
  if host then host:close() end
  host = nil
end

return M

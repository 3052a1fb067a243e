--- What the attacks need of the host, and what of it is looked at: for the tests, and for the table that compares.
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"

local M = {}

local CORE = "/proc/sys/kernel/core_pattern"

-- A raw system call by number: some attacks have no program for what they try.
local SC = [==[
sc(){ python3 -c 'import ctypes as c,sys,os
l=c.CDLL(None,use_errno=True)
r=l.syscall(*[c.c_long(int(a,0)) for a in sys.argv[1:]])
print("rc=%d %s"%(r,os.strerror(c.get_errno()) if r<0 else "ALLOWED"))' "$@"; }
]==]

-- Things of the host that nothing inside may reach: a file, a port, an abstract socket.
local SERVER = [==[
import socket, sys
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind("\0" + sys.argv[1]); b.listen()
print(a.getsockname()[1], flush=True)
sys.stdin.read()
]==]

---A folder with a file that nobody inside may read, and a name for a socket. The port is "0" until there is a server.
---@return { dir: string, port: string, socket: string, before: table }
function M.open()
  local bait = { dir = assert(fs.tmpdir "agentbox-canary-"), port = "0" }
  assert(fs.write(bait.dir .. "/host_canary", "CANARY\n", {}))
  bait.socket = bait.dir:match "[^/]+$"
  bait.before = M.look(bait)
  return bait
end

---Listens on a port of the loopback and on an abstract socket.
---@async
---@param bait table
---@param box agentbox.Sandbox     # of backend none
function M.serve(bait, box)
  bait.server = assert(box:spawn { "python3", "-c", SERVER, bait.socket })
  bait.port = assert(bait.server:read { until_text = "\n", timeout_s = 10 }):match "%d+"
end

---@async
---@param bait table
function M.close(bait)
  M.mend(bait)
  if bait.server then
    bait.server:kill()
    bait.server:wait(10)
  end
  fs.remove(bait.dir, true)
end

---What an attack that reached the host would have changed.
---@param bait table
---@return table<string, string?>
function M.look(bait)
  local function sum(path) return hash.sha256(assert(fs.read(path, 1 << 24))) end
  return {
    hostname = fs.read("/proc/sys/kernel/hostname", 256), core = fs.read(CORE, 256), version = sum "/etc/debian_version",
    sh = sum "/bin/sh", canary = fs.read(bait.dir .. "/host_canary", 256),
  }
end

---An attack that succeeded must not outlive its try.
---@param bait table
function M.mend(bait)
  if fs.read(CORE, 256) == bait.before.core then return end
  local file <close> = io.open(CORE, "w")
  if file then file:write(bait.before.core) end
end

---@param bait table
---@param text string
---@return string
function M.fill(bait, text)
  return (text:gsub("@CANARY@", bait.dir):gsub("@SOCKET@", bait.socket):gsub("@PORT@", bait.port))
end

---The attack as a shell runs it.
---@param bait table
---@param attack { run: string }
---@return string
function M.text(bait, attack)
  local text = M.fill(bait, attack.run)
  return text:find "%f[%w]sc %d" and SC .. text or text
end

return M

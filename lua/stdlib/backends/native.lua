--- backends/native.lua: sandboxes made by this program from the kernel's namespaces; docs/sandbox.md.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local log = require "agentbox.log"
local networks = require "agentbox.backends._network"
local sys = require "agentbox.sys.sandbox"
local time = require "agentbox.sys.time"

local M = { name = "native", can_freeze = true, can_allow = true }

-- Any address would do: all of them lead to the engine, which answers.
local ENGINE = "198.18.0.1"

local WIRE_WAIT_S = 5

-- What answers queries for names inside when the host's resolver listens on its loopback only: see rt/pasta.c.
local FORWARDER = "169.254.1.1"

local function resolver()
  local text = fs.read("/etc/resolv.conf", 65536) or ""
  for address in ("\n" .. text):gmatch "\nnameserver%s+(%S+)" do
    if not address:find "^127%." and address ~= "::1" then return address end
  end
  return FORWARDER
end

local function find(program)
  for _, dir in ipairs { "/usr/bin/", "/usr/local/bin/", "/bin/", "/usr/sbin/" } do
    if fs.stat(dir .. program) then return dir .. program end
  end
end

local function has_route(pid)
  for _, file in ipairs { "/net/route", "/net/ipv6_route" } do
    for line in (fs.read("/proc/" .. pid .. file, 65536) or ""):gmatch "[^\n]+" do
      if line:find "^%S+%s+00000000%s" or line:find "^0+ 00 .* %x+%s+[^l%s]%S*$" then return true end
    end
  end
  return false
end

-- In an image it may be a link to where a service of the system would keep it.
local function name_server(raw, address)
  local text = "nameserver " .. address .. "\n"
  if raw:write("/etc/resolv.conf", text) then return true end
  raw:remove "/etc/resolv.conf"
  return raw:write("/etc/resolv.conf", text)
end

-- pasta says nothing when it is ready: the route inside does.
local function wire(raw, setpriv, pasta)
  local ok, problem = raw:wire(setpriv, pasta)
  if not ok then return nil, problem end
  local deadline = time.monotonic() + WIRE_WAIT_S
  while not has_route(raw:pid()) do
    if not raw:is_wired() then
      return nil, err.new("network", "pasta ended at once: it needs a route of this machine to the outside, and /dev/net/tun")
    elseif time.monotonic() > deadline then
      return nil, err.new("network", "pasta did not bring the sandbox's network up")
    end
    fiber.sleep(0.005)
  end
  return name_server(raw, resolver())
end

local function connect(raw, network, setpriv, pasta)
  if network == "full" then return wire(raw, setpriv, pasta) end
  if type(network) == "table" then return name_server(raw, ENGINE) end
  return true
end

---What a name of an image stands for: nothing more for the host's files and for a directory, else an image of ours.
---@async
---@param text string
---@return { root?: string, id?: string, env?: table<string, string>, workdir?: string, user?: string }?
---@return agentbox.Err? err
function M.image(text)
  if text == "host" or text:sub(1, 1) == "/" then return {} end
  return require "agentbox.image".use(text)
end

local UNMAPPED = "image %s: its file system maps no user ids, as an overlay cannot, so that nobody inside can change its files"
local VOLUME = "keep images (AGENTBOX_HOME) on a file system that does, in a container on a volume"
local NOBODY = 65534

local warned = false

-- An agent that cannot write where it is to work would fail every task, and be given 0 for it.
local function can_work(raw, spec)
  if spec.image == "host" or not sys.probe().ways.image_unmapped then return true end
  local at = raw:stat(spec.workspace)
  if at and at.uid == NOBODY then
    return nil, err.new("unsupported", (UNMAPPED .. ", and it has %s, the workspace"):format(spec.image, spec.workspace), { hint = VOLUME })
  end
  if not warned then log.warn(UNMAPPED .. "; %s", spec.image, VOLUME) end
  warned = true
  return true
end

---@async
---@param spec agentbox.SandboxSpec
---@return userdata? raw       # agentbox.sys.sandbox
---@return agentbox.Err? err
function M.create(spec)
  local limits = spec.limits
  local full = spec.network == "full"
  local setpriv, pasta = full and find "setpriv", full and find "pasta"
  if full and not (setpriv and pasta) then
    return nil, err.new("unsupported", 'network = "full" needs the program pasta: apt-get install passt',
      { hint = "apt-get install passt" })
  end
  local raw, problem = sys.create {
    image = spec.image, layers = spec.layers, network = full and "full" or "none", allow = networks.raw(spec.network),
    hostname = "sandbox", workspace = spec.workspace,
    memory_bytes = limits.memory_mb and math.floor(limits.memory_mb * 1048576) or nil,
    pids = limits.pids_limit or nil, cpus = limits.cpu_count or nil,
    disk_bytes = limits.disk_mb and math.floor(limits.disk_mb * 1048576) or nil, inodes = limits.inodes or nil,
    nofile = limits.nofile or nil, env = spec.env, boot_timeout_s = spec.boot_timeout_s,
  }
  if not raw then return nil, problem end
  local ok
  ok, problem = can_work(raw, spec)
  if ok then ok, problem = connect(raw, spec.network, setpriv, pasta) end
  if ok then return raw end
  raw:close()
  return nil, problem
end

return M

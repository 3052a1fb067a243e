--- docker/options.lua: a sandbox's specification as a container's: limits and rights.
local apis = require "agentbox.docker.api"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local guest = require "agentbox.docker.guest"
local json = require "agentbox.json"
local log = require "agentbox.log"
local owner = require "agentbox.docker.owner"

local M = {}

-- What package managers and tests need of root; the rest of Docker's own list is dropped, NET_RAW and MKNOD too.
local CAPABILITIES = {
  "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT",
  "SETFCAP", "AUDIT_WRITE",
}

local SHM_MAX = 64 << 20

local warned = {}

---@param api agentbox.docker.Api
---@param text string
function M.warn_once(api, text)
  local key = api.engine .. text
  if warned[key] then return end
  warned[key] = true
  log.warn(("%s: %s"):format(api.engine, text))
end

-- What the engine is, and whether its storage can give a container a quota; asked once.
local function has_quota(api)
  if api.quota == nil then
    local info, problem = api:call("GET", "/info")
    if not info then return nil, problem end
    local driver, below = info.Driver, ""
    for _, pair in ipairs(apis.list(info.DriverStatus)) do
      if pair[1] == "Backing Filesystem" then below = pair[2] end
    end
    api.cgroup, api.default_runtime = info.CgroupVersion, info.DefaultRuntime
    api.quota = driver == "btrfs" or driver == "zfs" or (driver == "overlay2" and below == "xfs")
    api.storage = driver .. (below ~= "" and " on " .. below or "")
  end
  return true
end

---Whether this engine can do what is asked; says what it cannot keep.
---@async
---@param api agentbox.docker.Api
---@param spec table
---@return true? ok
---@return agentbox.Err? err
function M.check(api, spec)
  if spec.workspace == guest.DIR or spec.workspace:sub(1, #guest.DIR + 1) == guest.DIR .. "/" then
    return nil, err.new("badarg", "the workspace may not lie in " .. guest.DIR)
  end
  local ok, problem = has_quota(api)
  if not ok then return nil, problem end
  -- podman's service knows the field and does not look at it: what was not asked for would run.
  if spec.runtime and api.engine == "podman" and spec.runtime ~= api.default_runtime then
    return nil, err.new("unsupported", ("podman takes no runtime through its API, and has %s; %s was asked for")
      :format(tostring(api.default_runtime), spec.runtime), { hint = "set runtime in podman's containers.conf" })
  end
  if spec.limits.disk_mb and not api.quota then
    M.warn_once(api, ("limits.disk_mb is not kept: %s has no quotas"):format(api.storage))
  end
  if spec.limits.inodes then M.warn_once(api, "limits.inodes is not kept: the engine has no such limit") end
  return true
end

-- podman asks for more files and processes than it may have where it lacks CAP_SYS_RESOURCE, and starts nothing then.
-- What this process may have, its neighbour may too; podman lowers its own number of processes to 32768.
local function hard_limit(name, most)
  local value = (fs.read("/proc/self/limits", 8192) or ""):match("Max " .. name .. "%s+%S+%s+(%d+)")
  return value and math.min(tonumber(value), most)
end

local function ulimits(api, nofile)
  local list = json.array {}
  local function add(name, value)
    if value then list[#list + 1] = { Name = name, Soft = math.floor(value), Hard = math.floor(value) } end
  end
  add("nofile", nofile or api.engine == "podman" and hard_limit("open files", 1048576))
  if api.engine == "podman" then add("nproc", hard_limit("processes", 16384)) end
  return list
end

local function limits_of(api, limits, host)
  if limits.memory_mb then
    host.Memory = math.floor(limits.memory_mb * 1048576)
    host.MemorySwap = host.Memory -- a sandbox never swaps
    -- Nothing can be killed for what lies in a file system of memory, but the guest at last.
    host.ShmSize = math.min(host.Memory // 2, SHM_MAX)
  end
  if limits.cpu_count then host.NanoCpus = math.floor(limits.cpu_count * 1e9) end
  if limits.pids_limit then host.PidsLimit = math.floor(limits.pids_limit) end
  host.Ulimits = ulimits(api, limits.nofile)
  if limits.disk_mb and api.quota then host.StorageOpt = { size = ("%dM"):format(math.floor(limits.disk_mb)) } end
end

-- The workspace and /tmp of a read-only container are memory, and count as such.
local function tmpfs_mb(limits)
  local memory = limits.memory_mb and limits.memory_mb // 4
  return math.max(1, math.min(memory or math.huge, limits.disk_mb or math.huge, 65536))
end

---@param api agentbox.docker.Api
---@param spec table
---@param image string
---@param volume string
---@return table body     # of POST /containers/create
function M.of(api, spec, image, volume)
  local host = {
    NetworkMode = spec.network == "full" and "default" or "none",
    CapDrop = json.array { "ALL" }, CapAdd = json.array(CAPABILITIES),
    SecurityOpt = json.array { "no-new-privileges" }, ReadonlyRootfs = spec.read_only or false,
    Mounts = json.array { { Type = "volume", Source = volume, Target = guest.DIR, ReadOnly = true } },
    LogConfig = { Type = "none" }, RestartPolicy = { Name = "no" }, AutoRemove = false, Init = false,
    Runtime = spec.runtime, IpcMode = "private",
  }
  if spec.read_only then
    local size = ("size=%dm"):format(math.floor(tmpfs_mb(spec.limits)))
    host.Tmpfs = { ["/tmp"] = size .. ",mode=1777,exec", [spec.workspace] = size .. ",mode=755,exec" }
  end
  if api.cgroup == "2" then host.CgroupnsMode = "private" end
  limits_of(api, spec.limits, host)
  return {
    Image = image, Entrypoint = json.array { guest.PROGRAM }, Cmd = json.array { spec.workspace }, User = "0:0",
    WorkingDir = "/", Hostname = "sandbox", OpenStdin = true, StdinOnce = true, AttachStdin = true, AttachStdout = true,
    AttachStderr = true, Tty = false, Labels = owner.labels { name = spec.name or "" },
    HostConfig = host, -- podman's own way of checking health needs systemd, and speaks up even when it is off
    Healthcheck = api.engine ~= "podman" and { Test = json.array { "NONE" } } or nil,
  }
end

return M

--- What this machine gives a sandbox, rung by rung: each a check with the next step when it is missing.
local fs = require "agentbox.sys.fs"
local os_ = require "agentbox.sys.os"

local M = {}

local function first_line(path)
  local text = fs.read(path, 65536)
  return text and text:match "^[^\n]*" or nil
end

local function in_path(program)
  for dir in (os_.env "PATH" or "/usr/bin:/bin"):gmatch "[^:]+" do
    if fs.stat(dir .. "/" .. program) then return true end
  end
  return fs.stat("/usr/sbin/" .. program) ~= nil
end

---agentbox, Lua, kernel, system.
---@return agentbox.Check[]
function M.versions()
  local release = fs.read("/etc/os-release", 65536) or ""
  return {
    { name = "agentbox", ok = true, detail = os_.version },
    { name = "lua", ok = true, detail = _VERSION },
    { name = "kernel", ok = true, detail = first_line "/proc/sys/kernel/osrelease" or "unknown" },
    { name = "system", ok = true, detail = release:match 'PRETTY_NAME="([^"]*)"' or "unknown" },
  }
end

-- What a container must allow, in the words of whoever starts it; docs/sandbox.md has both ways.
local PLACES = {
  docker = { "in a Docker container", "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined "
    .. "--security-opt apparmor=unconfined; its --memory, --cpus and --pids-limit bound all sandboxes together" },
  podman = { "in a podman container", "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL; its --memory and "
    .. "--pids-limit bound all sandboxes together" },
  kubernetes = { "in a Kubernetes pod", "securityContext with seccompProfile and appArmorProfile Unconfined, and procMount Unmasked or "
    .. "capabilities SYS_ADMIN and NET_ADMIN; the pod's limits bound all sandboxes together" },
}

local function place_name()
  local of_service = os_.env "KUBERNETES_SERVICE_HOST"
  if of_service and of_service ~= "" then return "kubernetes" end
  if fs.exists "/run/.containerenv" then return "podman" end
  -- The file alone may be left from an image that a machine was made of.
  local mounts = fs.read("/proc/self/mountinfo", 1 << 20) or ""
  return fs.exists "/.dockerenv" and ("\n" .. mounts):find "\n%d+ %d+ %S+ %S+ / [^\n]* %- overlay " and "docker" or nil
end

---Where this runs, and what would give it more there.
---@return agentbox.Check check
---@return string? more      # nil on a machine of its own
function M.place()
  local who = os_.uid() == 0 and "as root" or "as an ordinary user"
  local place = PLACES[place_name()]
  local check = { name = "place", ok = true, detail = ("%s, %s"):format(place and place[1] or "no container that is known", who) }
  return check, place and place[2]
end

-- Each of these switches user namespaces off for ordinary users, on some system.
local function namespaces(is_root)
  local check = { name = "namespaces", ok = true, detail = is_root and "as root" or "for ordinary users too" }
  if first_line "/proc/sys/user/max_user_namespaces" == "0" then
    check.ok, check.detail = false, "user.max_user_namespaces is 0"
    check.hint = "sysctl user.max_user_namespaces=15000"
  elseif not is_root and first_line "/proc/sys/kernel/unprivileged_userns_clone" == "0" then
    check.ok, check.detail = false, "kernel.unprivileged_userns_clone is 0"
    check.hint = "sysctl kernel.unprivileged_userns_clone=1, or run as root"
  elseif not is_root and first_line "/proc/sys/kernel/apparmor_restrict_unprivileged_userns" == "1" then
    check.optional = true
    check.ok, check.detail = false, "AppArmor restricts user namespaces to programs with a profile"
    check.hint = "install the .deb, which ships the profile, or copy it to /etc/apparmor.d and run apparmor_parser -r"
  end
  return check
end

local function user_ids(is_root)
  local check = { name = "user ids", ok = true, detail = "as root any" }
  if is_root then return check end
  local tools = in_path "newuidmap" and in_path "newgidmap"
  local ranges = fs.read("/etc/subuid", 1 << 20) or ""
  check.optional, check.detail = true, "several users inside"
  if not tools then
    check.ok, check.detail = false, "one user inside: newuidmap and newgidmap are missing"
    check.hint = "apt install uidmap"
  elseif ranges == "" then
    check.ok, check.detail = false, "one user inside: /etc/subuid gives no range"
    check.hint = "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER"
  end
  return check
end

local function limits(cgroup, more)
  local kept, lost = {}, {}
  for _, name in ipairs { "memory", "pids", "cpu" } do
    local list = cgroup[name] and kept or lost
    list[#list + 1] = name
  end
  local check = { name = "limits", ok = #lost == 0, optional = true }
  check.detail = ("cgroup %s: %s"):format(cgroup.level, #kept > 0 and table.concat(kept, ", ") or "nothing")
  if #lost > 0 then
    check.detail = check.detail .. "; by resource limits only: " .. table.concat(lost, ", ")
    check.hint = more or cgroup.why or "run as root, or under systemd-run --user --scope -p Delegate=yes"
  end
  return check
end

local function network()
  local check = { name = "network", ok = in_path "pasta" and in_path "setpriv", optional = true }
  check.detail = check.ok and "none, a list, and full through pasta" or "none, and a list; network = full is refused"
  check.hint = not check.ok and "apt install passt" or nil
  return check
end

-- Asked, not guessed from a socket that may be there without anybody behind it.
local function engine(name)
  local check = { name = name, ok = false, optional = true }
  local api, problem = require("agentbox.backends." .. name).api()
  local version
  if api then version, problem = api:call("GET", "/version", { timeout_s = 5 }) end
  if not version then
    check.detail = "not needed; " .. problem.msg:gsub(": could not connect to .*", "")
    check.hint = name == "docker" and "apt-get install docker.io, or set DOCKER_HOST"
        or "podman system service --time=0, or set CONTAINER_HOST"
    return check
  end
  check.ok = true
  check.detail = ("%s at %s, API %s"):format(tostring(version.Version), api.address, api.version)
  return check
end

---Whether images can be used here, how many there are, and where.
---@async
---@return agentbox.Check
function M.images()
  local ok, problem = require "agentbox.image.child".check()
  local check = { name = "images", ok = ok ~= nil, optional = true }
  if not ok then
    check.detail, check.hint = problem.msg, problem.code == "unsupported" and "apt install libarchive13" or nil
    return check
  end
  local images = require "agentbox.image".list()
  check.ok = images ~= nil
  check.detail = images and ("%d in %s"):format(#images, (require "agentbox.image.store".dir())) or "no place for them"
  check.hint = not images and "set AGENTBOX_HOME to a folder that can be written" or nil
  return check
end

---How sandboxes' file trees are made here; known only after one was.
---@return agentbox.Check
function M.trees()
  local ways = require "agentbox.sys.sandbox".probe().ways
  local how = { ways.attached_trees and "put together attached, as before Linux 6.15" or "put together detached" }
  if ways.skeleton_per_range then how[#how + 1] = "a skeleton for each range of user ids" end
  if ways.copied_root then how[#how + 1] = "the root a copy, since tmpfs keeps no user attributes before Linux 6.6" end
  local check = { name = "file trees", ok = not ways.usr_unmapped, optional = true }
  if ways.usr_unmapped then
    how[#how + 1] = "/usr nobody's inside, so that it cannot be changed: its file system cannot map user ids"
    check.hint = "nothing, unless a task installs into /usr: then run where / is not an overlay, or use an image on a volume"
  end
  check.detail = table.concat(how, "; ")
  return check
end

---What a sandbox can use here. Whether one works is told by making one.
---@return agentbox.Check[]
function M.sandbox()
  local facts = require "agentbox.sys.sandbox".probe()
  local _, more = M.place()
  return { namespaces(facts.root), user_ids(facts.root), limits(facts.cgroup, more), network(), engine "docker",
    engine "podman" }
end

return M

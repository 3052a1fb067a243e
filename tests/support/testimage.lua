--- Images for the tests of container engines, made from this machine's static busybox: no network is needed.
local fs = require "agentbox.sys.fs"
local tar = require "agentbox.docker.tar"

local M = {}

M.NAME, M.BARE = "agentbox-test-busybox:latest", "agentbox-test-bare:latest"

--- Empty but for the links of a merged /usr: with the host's /usr and /etc bound into it, a machine of its own.
M.SHELL_OF_HOST = "agentbox-test-shell:latest"

local PASSWD = "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home:/bin/sh\n"

local function busybox()
  for _, path in ipairs { "/bin/busybox", "/usr/bin/busybox" } do
    if fs.stat(path) then return path end
  end
end

local function tree()
  local program = assert(busybox(), "busybox is needed")
  local parts = {}
  local function add(name, opts) parts[#parts + 1] = tar.entry(name, opts) end
  for _, dir in ipairs { "bin", "etc", "home", "mnt", "opt", "proc", "root", "sys", "usr" } do add(dir, { type = "dir" }) end
  add("tmp", { type = "dir", mode = 1023 })
  add("etc/passwd", { type = "file", bytes = PASSWD })
  add("bin/busybox", { type = "file", mode = 493, bytes = assert(fs.read(program, 64 << 20)) })
  local pipe <close> = assert(io.popen(program .. " --list"))
  for applet in pipe:lines() do
    if applet ~= "busybox" then add("bin/" .. applet, { type = "link", target = "busybox" }) end
  end
  parts[#parts + 1] = tar.END
  return table.concat(parts)
end

-- Nothing but a file: no shell, no libc, as images "from scratch" are.
local function bare()
  return tar.entry("etc", { type = "dir" }) .. tar.entry("etc/passwd", { type = "file", bytes = PASSWD }) .. tar.END
end

local function shell_of_host()
  local parts = {}
  for _, dir in ipairs { "etc", "opt", "proc", "root", "sys", "usr", "var" } do parts[#parts + 1] = tar.entry(dir, { type = "dir" }) end
  parts[#parts + 1] = tar.entry("tmp", { type = "dir", mode = 1023 })
  for _, name in ipairs { "bin", "sbin", "lib", "lib64" } do
    parts[#parts + 1] = tar.entry(name, { type = "link", target = "usr/" .. name })
  end
  return table.concat(parts) .. tar.END
end

local function import(api, name, archive)
  local repository, tag = name:match "^(.*):(.*)$"
  assert(api:follow("POST", "/images/create", {
    query = { fromSrc = "-", repo = repository, tag = tag }, body = archive, headers = { ["Content-Type"] = "application/x-tar" },
  }, function() end))
end

---Puts the images into an engine, unless they are there.
---@param engine "docker"|"podman"
---@return agentbox.docker.Api
function M.prepare(engine)
  local api = assert(require("agentbox.backends." .. engine).api())
  api.keep_alive = false
  if not api:call("GET", "/images/" .. M.NAME .. "/json") then import(api, M.NAME, tree()) end
  if not api:call("GET", "/images/" .. M.BARE .. "/json") then import(api, M.BARE, bare()) end
  if not api:call("GET", "/images/" .. M.SHELL_OF_HOST .. "/json") then import(api, M.SHELL_OF_HOST, shell_of_host()) end
  return api
end

return M

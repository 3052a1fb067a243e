--- Daemons that fail on purpose, as sandbox backends of this process.
---
---     local daemon <close> = fakedocker.start "hang create"
---     sandbox.create { backend = daemon.backend }
---     daemon.log()                                   -- the requests so far
local backends = require "agentbox.docker.backend"
local fs = require "agentbox.sys.fs"
local os_ = require "agentbox.sys.os"

local M = {}

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local count = 0

---@param mode string                 # see fakedocker.py
---@param call_s? number              # deadline of one call
---@param engine? "docker"|"podman"   # what it stands for
---@return table
function M.start(mode, call_s, engine)
  count = count + 1
  local dir = assert(fs.tmpdir "agentbox-fakedocker-")
  local socket = dir .. "/s"
  local command = ("python3 %s/fakedocker.py %s %d %s &"):format(here, socket, os_.pid(), mode)
  local pipe <close> = assert(io.popen(command, "r"))
  assert(pipe:read "l" == "ready", "fakedocker did not start")
  local name = "fakedocker" .. count
  local backend = backends.new(engine or "docker", "unix://" .. socket)
  local api = assert(backend.api())
  api.call_s, api.keep_alive, api.swept = call_s or 20, false, true
  package.loaded["agentbox.backends." .. name] = backend
  local daemon = { backend = name, api = api }
  function daemon.log() return fs.read(socket .. ".log", 1 << 20) or "" end
  return setmetatable(daemon, { __close = function()
    package.loaded["agentbox.backends." .. name] = nil
    fs.remove(dir, true)
  end })
end

return M

--- docker/guest.lua: the program that is pid 1 of every container, in a volume of the engine's own.
---
--- A volume can be mounted into any image, read-only ones and those without a shell too, and lies where the daemon is,
--- which need not be here. Its name is the hash of what is in it. A second volume, empty, says that it is filled: a
--- volume has no other mark that can be set afterwards. The container that fills it has a name, so that only one does.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local hash = require "agentbox.sys.hash"
local owner = require "agentbox.docker.owner"
local tar = require "agentbox.docker.tar"
local sys = require "agentbox.sys.sandbox"
local time = require "agentbox.sys.time"

local M = {}

M.DIR = "/.agentbox"
M.PROGRAM = "/.agentbox/init"

local FILL_WAIT_S = 60

-- One that is there already is fine, as Docker has it; podman says so with an error when two ask at once.
local function make_volume(api, name)
  local made, problem = api:call("POST", "/volumes/create", { json = { Name = name, Labels = owner.labels { init = "1" } } })
  if made or problem.msg:find("already exists", 1, true) then return true end
  return nil, problem
end

local function fill(api, image, name)
  local program = sys.guest()
  local ready, problem = make_volume(api, name)
  if not ready then return nil, problem end
  local made
  made, problem = api:call("POST", "/containers/create", {
    query = { name = name .. "-fill" },
    json = {
      Image = image, Entrypoint = { M.PROGRAM }, Labels = owner.labels { fill = "1" }, NetworkDisabled = true,
      HostConfig = { Mounts = { { Type = "volume", Source = name, Target = M.DIR } } },
    },
  })
  if not made then
    -- podman says so with status 500
    if problem.msg:find("already in use", 1, true) then problem = err.new("busy", problem.msg) end
    return nil, problem
  end
  local ok
  ok, problem = api:send("PUT", "/containers/" .. made.Id .. "/archive", {
    query = { path = M.DIR }, body = tar.entry("init", { type = "file", mode = 365, bytes = program }) .. tar.END,
    content_type = "application/x-tar",
  })
  if ok then ok, problem = make_volume(api, name .. "-filled") end
  local gone, why = api:call("DELETE", "/containers/" .. made.Id, { query = { force = 1 } })
  if not ok then return nil, problem end
  if not gone then return nil, why end
  return name
end

-- Somebody else fills it, or did not come to the end.
local function take_over(api, name)
  local found = api:call("GET", "/containers/" .. name .. "-fill/json")
  if found and owner.is_dead(found.Config.Labels) then
    api:call("DELETE", "/containers/" .. found.Id, { query = { force = 1 } })
  end
end

---@return string name
function M.volume()
  return "agentbox-init-" .. hash.sha256(sys.guest()):sub(1, 16)
end

---The name of the volume, filled; `image` is any that exists. Asked of the daemon once in a process.
---@async
---@param api agentbox.docker.Api
---@param image string
---@return string? volume
---@return agentbox.Err? err
function M.ensure(api, image)
  if api.volume then return api.volume end
  local name = M.volume()
  local deadline = time.monotonic() + FILL_WAIT_S
  while true do
    local filled, problem = api:call("GET", "/volumes/" .. name .. "-filled")
    if filled then break end
    if problem.code ~= "notfound" then return nil, problem end
    filled, problem = fill(api, image, name)
    if filled then break end
    if problem.code ~= "busy" then return nil, problem end
    if time.monotonic() > deadline then
      return nil, err.new("sandbox", ("the volume %s is being filled for %d s by somebody"):format(name, FILL_WAIT_S))
    end
    take_over(api, name)
    fiber.sleep(0.1)
  end
  api.volume = name
  return name
end

---Forgets that it is filled: it was found empty.
---@async
---@param api agentbox.docker.Api
function M.forget(api)
  if not api.volume then return end
  api:call("DELETE", "/volumes/" .. api.volume .. "-filled")
  api.volume = nil
end

return M

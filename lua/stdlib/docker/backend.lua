--- docker/backend.lua: what a sandbox backend must give, for one engine.
local apis = require "agentbox.docker.api"
local container = require "agentbox.docker.container"
local image = require "agentbox.docker.image"
local fiber = require "agentbox.sys.fiber"
local log = require "agentbox.log"
local sweep = require "agentbox.docker.sweep"

local M = {}

---@param engine "docker"|"podman"
---@param address? string     # where it is, when the environment does not say so
---@return table backend
function M.new(engine, address)
  local backend = { name = engine, can_freeze = true, is_container = true }
  local api, problem

  --- The engine's API, found once.
  ---@return agentbox.docker.Api?
  ---@return agentbox.Err?
  function backend.api()
    if not api then api, problem = apis.new(engine, address) end
    return api, problem
  end

  --- What an image says about itself; fetched when it is not there.
  ---@async
  ---@param name string
  ---@return table?
  ---@return agentbox.Err?
  function backend.image(name)
    local found, why = backend.api()
    if not found then return nil, why end
    return image.describe(found, name)
  end

  ---@async
  ---@param spec agentbox.SandboxSpec
  ---@return agentbox.docker.Container?
  ---@return agentbox.Err?
  function backend.create(spec)
    local found, why = backend.api()
    if not found then return nil, why end
    local raw
    raw, why = container.create(found, spec)
    if not raw and why.code == "notfound" then image.forget(found, spec.image) end
    if raw and not found.swept then
      found.swept = true -- once in a process, beside the work
      fiber.spawn(function()
        local removed = sweep.run(found)
        if removed and removed > 0 then log.info(("%s: removed %d containers of dead engines"):format(engine, removed)) end
      end)
    end
    return raw, why
  end

  --- Removes what engines left that are dead; dry only counts. An engine that is not there has nothing.
  ---@async
  ---@param dry? boolean
  ---@return integer
  function backend.sweep(dry)
    local found = backend.api()
    return found and sweep.all(found, dry) or 0
  end

  return backend
end

return M

--- docker/sweep.lua: removes containers and layers whose engine is dead. Never what a living one uses.
local apis = require "agentbox.docker.api"
local guest = require "agentbox.docker.guest"
local owner = require "agentbox.docker.owner"
local time = require "agentbox.sys.time"

local M = {}

local LIST_S = 10

--- A stopped container of an engine that cannot be seen from here is taken for an orphan after this long: a living one
--- removes its own at once.
M.FOREIGN_AGE_S = 3600

local function is_orphan(item, now)
  if owner.is_near(item.Labels) then return owner.is_dead(item.Labels) end
  return item.State ~= nil and item.State ~= "running" and now - (item.Created or now) > M.FOREIGN_AGE_S
end

local function orphans(api, name, label, now)
  local list, problem = api:call("GET", name, {
    query = { all = 1, filters = { label = { label } } }, timeout_s = LIST_S,
  })
  if not list then return nil, problem end
  local found = {}
  for _, item in ipairs(apis.list(list)) do
    if is_orphan(item, now) then found[#found + 1] = item.Id end
  end
  return found
end

-- Volumes with the guest of another version of this program; one that is in use is refused by the engine.
local function old_volumes(api)
  local list = api:call("GET", "/volumes", { query = { filters = { label = { owner.LABEL .. ".init=1" } } }, timeout_s = LIST_S })
  local mine, found = guest.volume(), {}
  for _, volume in ipairs(apis.list(list and list.Volumes)) do
    if volume.Name:sub(1, #mine) ~= mine then found[#found + 1] = volume.Name end
  end
  return found
end

---Also removes the volumes of other versions, for `agentbox prune`.
---@async
---@param api agentbox.docker.Api
---@param dry? boolean
---@return integer count
function M.all(api, dry)
  local count, volumes = M.run(api, dry) or 0, old_volumes(api)
  if dry then return count + #volumes end
  for _, name in ipairs(volumes) do
    if api:call("DELETE", "/volumes/" .. name) then count = count + 1 end
  end
  return count
end

---@async
---@param api agentbox.docker.Api
---@param dry? boolean
---@return integer? count
---@return agentbox.Err? err
function M.run(api, dry)
  local now, count = time.now(), 0
  local containers, problem = orphans(api, "/containers/json", owner.LABEL .. "=1", now)
  if not containers then return nil, problem end
  local layers = orphans(api, "/images/json", owner.LABEL .. ".layer=1", now) or {}
  if dry then return #containers + #layers end
  for _, id in ipairs(containers) do
    if api:call("DELETE", "/containers/" .. id, { query = { force = 1, v = 1 } }) then count = count + 1 end
  end
  for _, id in ipairs(layers) do
    if api:call("DELETE", "/images/" .. id, { query = { force = 1 } }) then count = count + 1 end
  end
  return count
end

return M

--- docker/container.lua: one container as a sandbox; what backends/docker.lua and backends/podman.lua share.
---
---     create ─ attach ─ start ─ greeting of the guest ─► commands and files over the stream ─► remove
---
--- It is removed when it is closed, and not by the engine on its own: why it died is asked before. When this process
--- dies the stream ends, with it the guest and so the container; what is left of that, `sweep` removes.
local apis = require "agentbox.docker.api"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local files = require "agentbox.docker.files"
local frames = require "agentbox.docker.frames"
local guest = require "agentbox.docker.guest"
local image = require "agentbox.docker.image"
local links = require "agentbox.docker.link"
local log = require "agentbox.log"
local options = require "agentbox.docker.options"
local process = require "agentbox.docker.process"
local rand = require "agentbox.sys.rand"

local M = {}

local LAST_WORDS_S = 5
local REMOVE_TRIES = 20

---@class agentbox.docker.Container
---@field link agentbox.docker.Link
---@field env table<string, string>
---@field workspace string
local Container = {}
Container.__index = Container
files.install(Container)

-- ---------------------------------------------------------------- why it died

local function death(self, problem)
  local found = self.api:call("GET", "/containers/" .. self.cid .. "/json", { timeout_s = LAST_WORDS_S })
  local state = found and found.State or {}
  if state.OOMKilled then
    return err.new("sandbox", "the container died: its memory limit was reached", { oom = true })
  elseif found and not state.Running then
    local words = self.link and self.link.stderr ~= "" and ": " .. self.link.stderr:gsub("%s+$", "") or ""
    return err.new("sandbox", ("the container died with status %s%s%s"):format(tostring(state.ExitCode),
      state.Error and state.Error ~= "" and ", " .. state.Error or "", words))
  elseif found then
    return err.new("sandbox", "the stream to the container was cut off" .. (problem and ": " .. problem.msg or ""))
  end
  return err.new("sandbox", "the container is gone, or its engine" .. (problem and ": " .. problem.msg or ""))
end

-- ---------------------------------------------------------------- layers

---@class agentbox.docker.Layer
---@field image string
local Layer = {}
Layer.__index = Layer

-- Forced, or a tag would keep it; but to podman that means: with the containers that were made from it. So theirs come first.
-- It is waited for: what is under way when the process ends would stay.
local function let_go(layer)
  if not layer.closed or layer.users > 0 or layer.gone then return end
  layer.gone = true
  layer.api:call("DELETE", "/images/" .. layer.image, { query = { force = 1 } })
end

local function layer_of(api, id)
  return setmetatable({ api = api, image = id, users = 0 }, Layer)
end

--- Removes it, when nothing that was made from it is left.
---@async
function Layer:close()
  self.closed = true
  let_go(self)
end

Layer.__close = Layer.close

-- A container stands on its layer no more.
local function leave(self)
  local base = self.base
  self.base = nil
  if not base then return end
  base.users = base.users - 1
  let_go(base)
end

-- ---------------------------------------------------------------- create

-- A container that dies on its own at that moment cannot be killed, and the engines say so instead of waiting.
local function remove(api, id)
  local ok, problem
  for _ = 1, REMOVE_TRIES do
    ok, problem = api:call("DELETE", "/containers/" .. id, { query = { force = 1, v = 1 } })
    if ok or problem.code == "notfound" then return true end
    if not problem.http_status then break end
    fiber.sleep(0.1)
  end
  return nil, problem
end

-- Whether the volume's program was missing, which an emptied volume explains.
local function lacks_program(problem)
  return tostring(problem.msg):find(guest.PROGRAM, 1, true) ~= nil
end

-- In a fiber of its own: an engine goes on making what nobody waits for any more, so whoever is cancelled here must learn its
-- id all the same, and remove it.
local function begin(self, spec)
  local body = options.of(self.api, spec, self.image, self.api.volume)
  self.making = fiber.spawn(function()
    return self.api:call("POST", "/containers/create", { query = { name = self.name }, json = body })
  end)
  local _, made, problem = self.making:join()
  self.making = nil
  return made, problem
end

local function make(self, spec)
  local made, problem = begin(self, spec)
  if not made then return nil, problem end
  self.cid = made.Id
  for _, warning in ipairs(apis.list(made.Warnings)) do options.warn_once(self.api, warning) end
  local connection, first = self.api:attach(self.cid)
  if not connection then return nil, first end
  self.link = links.new(connection, first, function(why) return death(self, why) end)
  return self.api:call("POST", "/containers/" .. self.cid .. "/start")
end

local function greet(self)
  local hello, problem = self.link:greeting(self.api.call_s)
  if not hello then return nil, problem end
  local protocol, workspace = ("<I4z"):unpack(hello)
  if protocol ~= frames.PROTOCOL then
    return nil, err.new("sandbox", ("the container's guest speaks protocol %d"):format(protocol))
  end
  if workspace ~= "" then log.warn(("%s: no workspace: %s"):format(self.api.engine, workspace)) end
  return true
end

local function attempt(self, spec)
  local volume, problem = guest.ensure(self.api, self.image)
  if not volume then return nil, problem end
  local ok
  ok, problem = make(self, spec)
  if ok then ok, problem = greet(self) end
  if ok then return true end
  self:discard()
  return nil, problem
end

local Unfinished = { __close = function(self)
  if not self.container then return end
  self.container:discard()
  leave(self.container)
end }

---@async
---@param api agentbox.docker.Api
---@param spec table            # of sandbox.create
---@return agentbox.docker.Container?
---@return agentbox.Err?
function M.create(api, spec)
  local layer = spec.layers and spec.layers[1]
  local self = setmetatable({
    api = api, image = layer and layer.image or spec.image, workspace = spec.workspace, env = spec.env,
    name = (spec.name or "agentbox"):sub(1, 55) .. ("-%02x%02x%02x"):format(rand.bytes(3):byte(1, 3)),
  }, Container)
  if layer then
    self.base = layer
    layer.users = layer.users + 1
  end
  local clean <close> = setmetatable({ container = self }, Unfinished)
  local ok, problem = options.check(api, spec)
  if not ok then return nil, problem end
  ok, problem = attempt(self, spec)
  if not ok and lacks_program(problem) then
    guest.forget(api)
    ok, problem = attempt(self, spec)
  end
  if not ok then return nil, problem end
  clean.container = nil
  return self
end

-- ---------------------------------------------------------------- commands

---@async
function Container:exec(command, opts)
  if self.closed then return nil, err.new("sandbox", "the sandbox is closed") end
  return process.run(self, command, opts or {})
end

function Container:spawn(command, opts)
  if self.closed then return nil, err.new("sandbox", "the sandbox is closed") end
  return process.start(self, command, opts or {}, true)
end

---@async
function Container:kill_all()
  local data, problem = self.link:request(frames.PURGE, "", 60)
  if not data then return nil, problem end
  return true
end

-- ---------------------------------------------------------------- facts

function Container:id() return self.cid:sub(1, 12) end

function Container:is_open() return not self.closed end

function Container.user_count() return 0xffffffff end

---@async
function Container:usage()
  return require "agentbox.docker.usage".read(self)
end

-- ---------------------------------------------------------------- the end

--- Gives up what was made so far, whatever that is.
---@async
function Container:discard()
  if self.link then self.link:fail(err.new("sandbox", "the sandbox is closed")) end
  if self.making then -- at most as long as the call's own deadline
    local _, made = self.making:join()
    self.making, self.cid = nil, made and made.Id
  end
  if self.cid then
    local ok, problem = remove(self.api, self.cid)
    self.cid = nil
    if not ok then log.warn("a container could not be removed: " .. problem.msg) end
  end
  return true
end

---@async
function Container:close()
  if self.closed then return true end
  self.closed = true
  local id = self.cid
  self:discard()
  self.cid = id
  leave(self)
  return true
end

Container.__close = Container.close

--- Its files so far, while it lives on; the engine stops what runs inside for that long.
---@async
---@return agentbox.docker.Layer?
---@return agentbox.Err?
function Container:snapshot()
  if self.closed then return nil, err.new("sandbox", "the sandbox is closed") end
  local id, problem = image.commit(self.api, self.cid, true)
  if not id then return nil, problem end
  return layer_of(self.api, id)
end

---@async
function Container:diff(base, max)
  if self.closed then return nil, err.new("sandbox", "the sandbox is closed") end
  return require "agentbox.docker.changes".of(self, base, max)
end

---@async
---@return agentbox.docker.Layer?
---@return agentbox.Err?
function Container:freeze()
  if self.closed then return nil, err.new("sandbox", "nothing that can be frozen") end
  local ok, problem = self:kill_all()
  if not ok then return nil, problem end
  local id
  id, problem = image.commit(self.api, self.cid)
  self:close()
  if not id then return nil, problem end
  return layer_of(self.api, id)
end

return M

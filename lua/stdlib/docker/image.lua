--- docker/image.lua: images as a Docker-compatible engine keeps them: there, pulled, built, committed.
local apis = require "agentbox.docker.api"
local credentials = require "agentbox.image.credentials"
local err = require "agentbox.err"
local json = require "agentbox.json"
local log = require "agentbox.log"
local names = require "agentbox.image.name"
local owner = require "agentbox.docker.owner"
local secret = require "agentbox.secret"

local M = {}

--- What stands for the host's own files, which no container engine has.
M.DEFAULT = names.presets.python

local PULL_S, BUILD_S = 3600, 3600

---The engine's name for an image: presets are spelled out, "host" is the default.
---@param image? string
---@return string
function M.resolve(image)
  if not image or image == "host" then return M.DEFAULT end
  return names.presets[image] or image
end

local function authorisation(name)
  local basic = credentials.basic(name.registry)
  if not basic then return nil end
  local user, password = require "agentbox.docker.base64".decode(secret.reveal(basic):match "%S+$"):match "^([^:]*):(.*)$"
  if not user then return nil end
  local text = json.encode { username = user, password = password, serveraddress = name.registry }
  return { ["X-Registry-Auth"] = (credentials.base64(text):gsub("[+/]", { ["+"] = "-", ["/"] = "_" })) }
end

---Fetches an image.
---@async
---@param api agentbox.docker.Api
---@param image string
---@param on_progress? fun(line: string)
---@return true? ok
---@return agentbox.Err? err
function M.pull(api, image, on_progress)
  local name, problem = names.parse(image)
  if not name then return nil, problem end
  local repository = name.registry == "docker.io" and name.repository:gsub("^library/", "")
      or name.registry .. "/" .. name.repository
  local ok
  ok, problem = api:follow("POST", "/images/create", {
    query = { fromImage = repository, tag = name.digest or name.tag }, headers = authorisation(name), timeout_s = PULL_S,
  }, function(event)
    if on_progress and event.status then
      on_progress((event.id and event.id .. ": " or "") .. event.status
        .. (event.progress and " " .. event.progress or ""))
    end
  end)
  if ok then return true end
  if tostring(problem.msg):find "not found" or tostring(problem.msg):find "manifest unknown"
      or problem.code == "notfound" then
    problem = err.new("notfound", ("no image %s: %s"):format(image, problem.msg))
  end
  return nil, problem
end

---What the engine knows of an image, pulled when it is not there.
---@async
---@param api agentbox.docker.Api
---@param image string
---@return table? inspected
---@return agentbox.Err? err
function M.ensure(api, image)
  local found, problem = api:call("GET", "/images/" .. image .. "/json")
  if found or problem.code ~= "notfound" then return found, problem end
  if image:find "^sha256:" then return nil, problem end
  log.info(("%s: pulling %s"):format(api.engine, image))
  local last
  local ok
  ok, problem = M.pull(api, image, function(line)
    local state = line:match "^%w+: (%a+ %a+)$"
    if state and state ~= last then log.debug(("%s: %s"):format(image, line)) end
    last = state or last
  end)
  if not ok then return nil, problem end
  return api:call("GET", "/images/" .. image .. "/json")
end

local function environment(list)
  local env = {}
  for _, pair in ipairs(apis.list(list)) do
    local name, value = pair:match "^([^=]+)=(.*)$"
    if name then env[name] = value end
  end
  return env
end

local function text(value) return type(value) == "string" and value ~= "" and value or nil end

---What sandbox.create wants to know of an image, asked once in a process: so all its sandboxes have the same one.
---@async
---@param api agentbox.docker.Api
---@param image string
---@return { root: string, id: string, env: table<string, string>, workdir?: string, user?: string }?
---@return agentbox.Err?
function M.describe(api, image)
  api.images = api.images or {}
  local known = api.images[image]
  if known then return known end
  local found, problem = M.ensure(api, M.resolve(image))
  if not found then return nil, problem end
  local config = json.is_object(found.Config) and found.Config or {}
  known = {
    root = found.Id, id = found.Id, env = environment(config.Env), workdir = text(config.WorkingDir), user = text(config.User),
  }
  api.images[image] = known
  return known
end

---Forgets an image that is not there any more.
---@param api agentbox.docker.Api
---@param id string
function M.forget(api, id)
  for name, known in pairs(api.images or {}) do
    if known.id == id then api.images[name] = nil end
  end
end

---Builds an image from a tar archive of its context; gives its id.
---@async
---@param api agentbox.docker.Api
---@param context string
---@param tag string
---@param on_line fun(text: string)
---@param opts? { dockerfile?: string, no_cache?: boolean, pull?: boolean, network?: string }
---@return string? id
---@return agentbox.Err? err
function M.build(api, context, tag, on_line, opts)
  opts = opts or {}
  local id
  local ok, problem = api:follow("POST", "/build", {
    query = {
      t = tag, dockerfile = opts.dockerfile or "Dockerfile", rm = 1, forcerm = 1, nocache = opts.no_cache and 1 or 0,
      pull = opts.pull and 1 or nil, networkmode = opts.network,
    },
    body = context, headers = { ["Content-Type"] = "application/x-tar" }, timeout_s = BUILD_S,
  }, function(event)
    if event.stream then on_line(event.stream) end
    if event.status then on_line((event.id and event.id .. ": " or "") .. event.status .. "\n") end
    id = json.is_object(event.aux) and event.aux.ID or id
  end)
  if not ok then return nil, problem end
  local found
  found, problem = api:call("GET", "/images/" .. tag .. "/json")
  if not found then return nil, problem end
  return id or found.Id
end

---What a container has changed, as an image without a name that goes with its layer.
---@async
---@param api agentbox.docker.Api
---@param container string
---@param pause? boolean      # what runs inside is stopped meanwhile
---@return string? id
---@return agentbox.Err? err
function M.commit(api, container, pause)
  local made, problem = api:call("POST", "/commit", {
    query = { container = container, pause = pause and 1 or 0 }, json = { Labels = owner.labels { layer = "1" } }, timeout_s = 600,
  })
  if not made then return nil, problem end
  return made.Id
end

return M

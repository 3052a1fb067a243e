--- harbor/environment.lua: the image of a Harbor task: pulled, or built from environment/, by this program or by an engine.
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local shape = require "agentbox.task.shape"
local yaml = require "agentbox.yaml"

local M = {}

---@class agentbox.HarborImage
---@field name string
---@field workdir? string

local ENGINES = { docker = true, podman = true }

local function unsupported(text) return nil, err.new("unsupported", text) end

local function there(path)
  local st = fs.stat(path)
  return st ~= nil and st.type == "file"
end

-- A compose file of one service that is built or has an image: what it says beside that has no effect.
local function compose(path, warnings)
  local text, problem = fs.read(path, 1 << 20)
  local doc = text and yaml.decode(text)
  local services = json.is_object(doc) and doc.services
  if not json.is_object(services) then return nil, problem or err.new("task", path .. ": no services") end
  local names = json.keys(services)
  if #names ~= 1 then return unsupported(("%s: %d services; one can be run here"):format(path, #names)) end
  local main = services[names[1]]
  if not json.is_object(main) then return nil, err.new("task", path .. ": the service is no map") end
  for _, key in ipairs(json.keys(main)) do
    if key ~= "build" and key ~= "image" then warnings[#warnings + 1] = ("%s: %s has no effect"):format(path, key) end
  end
  local build = json.is_object(main.build) and main.build or { context = main.build }
  local context, file = build.context or ".", build.dockerfile or "Dockerfile"
  if type(main.image) == "string" and not main.build then return { image = main.image } end
  if type(context) ~= "string" or type(file) ~= "string" then return nil, err.new("task", path .. ": build must be a folder") end
  if (context ~= "." and context ~= "./") or file ~= "Dockerfile" then
    return unsupported(path .. ": a build of anything but ./Dockerfile")
  end
  return {}
end

-- What to do: { image = name } or { build = folder }.
local function source_of(dir, settings)
  if settings.docker_image then return { image = settings.docker_image } end
  local folder = dir .. "/environment"
  for _, name in ipairs { "docker-compose.yaml", "docker-compose.yml" } do
    if there(folder .. "/" .. name) then
      local found, problem = compose(folder .. "/" .. name, settings.warnings)
      if not found then return nil, problem end
      if found.image then return found end
    end
  end
  if there(folder .. "/Dockerfile") then return { build = folder } end
  return nil, err.new("task", dir .. ": no environment/Dockerfile, and no environment.docker_image in task.toml")
end

-- One name a folder, so that two tasks of one name do not share an image.
local function name_of(dir, id)
  local real = fs.realpath(dir) or dir
  local safe = shape.safe_name(id):lower():gsub("[^a-z0-9]+", "-"):gsub("^-+", ""):gsub("-+$", "")
  return ("harbor/%s:%s"):format(safe == "" and "task" or safe, hash.sha256(real):sub(1, 12))
end

local function by_engine(source, name, opts)
  local api, problem = require("agentbox.backends." .. opts.backend).api()
  if not api then return nil, problem end
  local engine = require "agentbox.docker.image"
  if source.build then
    local context
    context, problem = require "agentbox.docker.context".pack(source.build)
    if not context then return nil, problem end
    local id
    id, problem = engine.build(api, context, name, opts.on_output or function() end,
      { network = opts.network == "none" and "none" or nil })
    if not id then return nil, problem end
  else
    name = source.image
    local found
    found, problem = engine.ensure(api, name)
    if not found then return nil, problem end
  end
  local known
  known, problem = engine.describe(api, name)
  if not known then return nil, problem end
  return { name = name, workdir = known.workdir }
end

local function by_ourselves(source, name, settings, opts)
  local images = require "agentbox.image"
  local image, problem
  if source.build then
    image, problem = images.build {
      name = name, file = source.build .. "/Dockerfile", context = source.build, network = opts.network or "full",
      timeout_s = settings.build_timeout_s, on_output = opts.on_output,
    }
  else
    image, problem = images.get(source.image)
    if not image and problem.code == "notfound" then image, problem = images.pull(source.image) end
  end
  if not image then return nil, problem end
  return { name = source.build and name or source.image, workdir = image.workdir }
end

--- Makes the image of a task folder, or finds that it is there.
---@async
---@param dir string
---@param id string
---@param settings agentbox.HarborSettings    # gets warnings
---@param opts { backend?: string, network?: string, on_output?: fun(text: string) }
---@return agentbox.HarborImage?
---@return agentbox.Err?
function M.image(dir, id, settings, opts)
  local source, problem = source_of(dir, settings)
  if not source then return nil, problem end
  local name = name_of(dir, id)
  local image
  if ENGINES[opts.backend] then
    image, problem = by_engine(source, name, opts)
  else
    image, problem = by_ourselves(source, name, settings, opts)
  end
  if image then return image end
  return nil, err.wrap(problem, dir .. ": its environment")
end

return M

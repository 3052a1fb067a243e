--- harbor.lua: tasks in Harbor's form, a folder with task.toml, instruction.md, environment/, tests/ and solution/.
---
---     local task = assert(ab.harbor.load "hello-world")           -- its image is built or pulled
---     local traj = assert(ab.rollout.run { task = task, model = model })
---     assert(ab.harbor.save(ab.task.load "tasks/sum_list", "out/sum_list"))
---
--- What is kept of each form by the other: docs/harbor.md.
local environment = require "agentbox.harbor.environment"
local err = require "agentbox.err"
local folder = require "agentbox.task.folder"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local settings_ = require "agentbox.harbor.settings"
local shape = require "agentbox.task.shape"

local M = {}

local LOAD = {
  backend = { "string", default = "native" },                    -- whose image store: native, docker or podman
  network = { "string", enum = { "none", "full" } },             -- of the commands of a build; full when nothing is said
  on_output = { "function" }, on_warning = { "function" },
}

--- Whether a folder is a Harbor task.
---@async
---@param dir string
---@return boolean
function M.is(dir)
  local st = fs.stat(dir .. "/task.toml")
  return st ~= nil and st.type == "file"
end

-- The instruction without the comments in front that mark a benchmark's files.
local function instruction_of(text)
  local rest = text:gsub("\r\n", "\n")
  while true do
    local line, after = rest:match "^([^\n]*)\n?(.*)$"
    local bare = line:match "^%s*(.-)%s*$"
    if not (bare:lower():find "canary" and (bare:find "^#" or bare:find "^<!%-%-.*%-%->$")) then break end
    rest = after:gsub("^%s*\n", "")
  end
  return rest
end

local function read_text(path, max)
  local text, problem = fs.read(path, max)
  if text then return text end
  return folder.unread(path, problem, "is missing")
end

local function trees_of(dir)
  local trees = { files = {}, hidden = {}, solution = {} }
  local tests, problem = folder.read_tree(dir .. "/tests")
  if not tests then return nil, problem end
  if not tests["test.sh"] then return nil, err.new("task", dir .. "/tests: no test.sh") end
  for path, file in pairs(tests) do trees.hidden["tests/" .. path] = file end
  trees.solution, problem = folder.read_tree(dir .. "/solution")
  if not trees.solution then return nil, problem end
  return trees
end

local function metadata_of(settings)
  local out = json.object {}
  for _, key in ipairs(json.keys(settings.metadata)) do out[key] = settings.metadata[key] end
  out.source = out.source or "harbor"
  return out
end

local function fields_of(id, text, settings, image)
  local params = json.object {}
  if next(settings.verifier_env) then params.env = settings.verifier_env end
  if next(settings.solution_env) then params.solution_env = settings.solution_env end
  return {
    task_id = id, description = text, image = image.name, workspace = settings.workdir or image.workdir,
    verifier = { type = "harbor", timeout_s = settings.verifier_timeout_s, sandbox = "agent", params = params,
      user = settings.verifier_user },
    metadata = metadata_of(settings), timeout_s = settings.agent_timeout_s, network = settings.network,
    env = next(settings.env) and settings.env or nil,
    limits = { cpu_count = settings.cpus, memory_mb = settings.memory_mb, disk_mb = settings.storage_mb },
  }
end

--- Loads a Harbor task and makes its image, which takes as long as its Dockerfile does. A task that cannot be run as it says is
--- refused (code `unsupported`).
---@async
---@param dir string
---@param opts? { backend?: string, network?: "none"|"full", on_output?: fun(text: string), on_warning?: fun(text: string) }
---@return agentbox.Task? task
---@return agentbox.Err? err
function M.load(dir, opts)
  local clean = schema.options(opts, LOAD, "harbor.load")
  dir = #dir > 1 and dir:gsub("/+$", "") or dir
  local text, problem = read_text(dir .. "/task.toml", 1 << 20)
  if not text then return nil, problem end
  local settings
  settings, problem = settings_.read(text, dir .. "/task.toml")
  if not settings then return nil, problem end
  if fs.stat(dir .. "/steps") then return nil, err.new("unsupported", dir .. ": a task of several steps cannot be run here") end
  local instruction, trees
  instruction, problem = read_text(dir .. "/instruction.md", 4 << 20)
  if instruction then trees, problem = trees_of(dir) end
  if not trees then return nil, problem end
  local id = settings.name or (fs.realpath(dir) or dir):match "[^/]*$"
  local wrong = shape.id_problem(id)
  if wrong then return nil, err.new("task", dir .. "/task.toml: task.name: " .. wrong) end
  local image
  image, problem = environment.image(dir, id, settings, clean)
  if not image then return nil, problem end
  if image.workdir == "/" then image.workdir = nil end
  for _, warning in ipairs(settings.warnings) do
    if clean.on_warning then clean.on_warning(dir .. ": " .. warning) end
  end
  return shape.build(fields_of(id, instruction_of(instruction), settings, image), { where = dir, folder = trees })
end

--- Writes a task in Harbor's form. Not every task has one: a verifier in Lua or one that asks a model is refused.
---@async
---@param task agentbox.Task
---@param dir string        # made; must not be there
---@param opts? { image?: string }   # what the Dockerfile begins with; the task's own image, else one for its language
---@return string[]? lost   # what Harbor's form has no place for
---@return agentbox.Err? err
function M.save(task, dir, opts) return require "agentbox.harbor.write".save(task, dir, opts) end

return M

--- A suite on the disk: suite.json beside tasks/, each task a folder.
local canonical = require "agentbox.suite.canonical"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local manifests = require "agentbox.suite.manifest"
local rand = require "agentbox.sys.rand"
local task = require "agentbox.task"

local M = {}

local MAX_MANIFEST = 16 << 20

---@class agentbox.Suite
---@field root? string            # the folder it was read from
---@field manifest table          # suite.json with every default filled in
---@field tasks agentbox.Task[]   # in the order of their folders
---@field unknown string[]        # keys of suite.json that mean nothing here

local function bad(code, text, ...) return nil, err.new(code, text:format(...)) end

local function read_manifest(path)
  local text, problem = fs.read(path, MAX_MANIFEST)
  if not text then
    if problem.code == "notfound" then return bad("notfound", "%s: no such file: a suite is a folder with a suite.json", path) end
    return nil, problem
  end
  local raw
  raw, problem = json.decode((text:gsub("^\xef\xbb\xbf", "")))
  if problem then return bad("config", "%s: %s", path, problem.msg) end
  if not json.is_object(raw) then return bad("config", "%s: must hold an object", path) end
  return manifests.check(raw, path)
end

--- Reads a suite.
---
--- Returns nil, err: `notfound` without a suite.json, `config` when it is wrong, `task` when a task is.
---@async
---@param root string
---@return agentbox.Suite?
---@return agentbox.Err? err
function M.load(root)
  root = #root > 1 and root:gsub("/+$", "") or root
  local manifest, problem, unknown = read_manifest(root .. "/suite.json")
  if not manifest then return nil, problem end
  local folder = root .. "/" .. manifest.tasks_path
  local tasks
  tasks, problem = task.dir(folder)
  if not tasks then return nil, err.wrap(problem, folder) end
  if #tasks == 0 then return bad("task", "%s: no tasks here", folder) end
  return { root = root, manifest = manifest, tasks = tasks, unknown = unknown }
end

-- The folder of a task: its id where that is a file's name, made unique where two ids come to the same.
local function folder_name(id, taken)
  local base = task.safe_name(id)
  local name, n = base, 1
  while taken[name] do
    n = n + 1
    name = base .. "_" .. n
  end
  taken[name] = true
  return name
end

local function write_tasks(tasks, folder)
  local ok, problem = fs.mkdir(folder, true)
  if not ok then return nil, problem end
  local taken = {}
  for _, one in ipairs(tasks) do
    ok, problem = task.save(one, folder .. "/" .. folder_name(one.task_id, taken))
    if not ok then return nil, problem end
  end
  return true
end

-- Puts the new folder where the old one is, so that nothing of the old one is left among the tasks.
local function swap(new, place)
  local old
  if fs.exists(place) then
    old = new .. ".old"
    local ok, problem = fs.rename(place, old)
    if not ok then return nil, problem end
  end
  local ok, problem = fs.rename(new, place)
  if not ok then return nil, problem end
  if old then return fs.remove(old, true) end
  return true
end

--- Writes a suite, all of it; what an earlier one of the same folder had beside is gone.
---@async
---@param suite agentbox.Suite
---@param root string
---@return true?
---@return agentbox.Err? err
function M.save(suite, root)
  local ok, problem = fs.mkdir(root, true)
  if not ok and problem.code ~= "exists" then return nil, problem end
  local place = root .. "/" .. suite.manifest.tasks_path
  local parent = place:match "^(.*)/[^/]*$"
  ok, problem = fs.mkdir(parent, true)
  if not ok and problem.code ~= "exists" then return nil, problem end
  local fresh = ("%s/.tasks-%s"):format(parent, rand.uuid4():sub(1, 8))
  ok, problem = write_tasks(suite.tasks, fresh)
  if ok then ok, problem = swap(fresh, place) end
  if not ok then
    fs.remove(fresh, true)
    return nil, problem
  end
  return M.save_manifest(suite.manifest, root)
end

--- Writes suite.json alone.
---@async
---@param manifest table
---@param root string
---@return true?
---@return agentbox.Err? err
function M.save_manifest(manifest, root) return fs.write(root .. "/suite.json", manifests.text(manifest)) end

-- AgentBox reads what is below files/ in Python's text mode, which makes every line end "\n"; what stands in task.json stays.
local function in_folder(one, path)
  if not one.files[path].bytes:find("\r", 1, true) then return false end
  return one.dir ~= nil and fs.exists(("%s/files/%s"):format(one.dir, path))
end

--- Whether the stored content hash is that of what is there. A suite that AgentBox froze before it wrote it has its line
--- ends in the hash; that one is right, too, although AgentBox itself does not find it again.
---@async
---@param suite agentbox.Suite
---@return "ok"|"none"|"differs" verdict
---@return string hash   # as AgentBox would compute it now
function M.integrity(suite)
  local now = canonical.content_hash(suite.manifest, suite.tasks, in_folder)
  local stored = suite.manifest.content_hash
  if stored == json.null or stored == "" then return "none", now end
  if stored == now or stored == canonical.content_hash(suite.manifest, suite.tasks) then return "ok", now end
  return "differs", now
end

return M

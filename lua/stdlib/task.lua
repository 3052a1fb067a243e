--- task.lua: tasks. One task is a file (JSON or YAML) or a folder: task.json or task.yaml beside files/ (what the
--- agent starts from), hidden/ (laid only for the verifier) and solution/ (the reference, never seeded).
---
--- A loaded task has all its bytes in memory and is never changed; `hash` covers every field and byte.
local err = require "agentbox.err"
local folder = require "agentbox.task.folder"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local shape = require "agentbox.task.shape"
local yaml = require "agentbox.yaml"

local M = {}

local MAX_TASK_FILE = 64 << 20
local NAMES = { "task.json", "task.yaml", "task.yml" }

---@class agentbox.Task
---@field task_id string
---@field description string
---@field files table<string, agentbox.TaskFile>
---@field hidden table<string, agentbox.TaskFile>
---@field solution table<string, agentbox.TaskFile>
---@field setup_commands string[]
---@field verifier table
---@field metadata table
---@field system_prompt_extra? string
---@field allowed_tools? string[]
---@field max_steps? integer
---@field timeout_s? number     # of the whole episode
---@field workspace? string     # where the files are; /workspace when nothing is said
---@field image? string
---@field limits? table
---@field env? table<string, string>
---@field network? string|table
---@field params? any
---@field data? any
---@field artifacts string[]
---@field dir? string     # the folder it was read from
---@field hash string     # "sha256:..."

local function bad(path, text) return nil, err.new("task", path .. ": " .. text) end

local unread = folder.unread

local function parent_of(path)
  local dir = path:match("^(.*)/[^/]*$")
  if dir == nil then return "." end
  return dir == "" and "/" or dir
end

local function read_table(path)
  local st, problem = fs.stat(path)
  if not st then return unread(path, problem, "no such task file") end
  if st.type ~= "file" then return bad(path, "is a " .. st.type .. ", not a task file") end
  local text
  text, problem = fs.read(path, MAX_TASK_FILE)
  if not text then return unread(path, problem) end
  local value
  if path:match("%.ya?ml$") then
    value, problem = yaml.decode(text)
  elseif path:match("%.json$") then
    value, problem = json.decode(text)
  else
    return bad(path, "a task file ends in .json, .yaml or .yml")
  end
  if value == nil then return bad(path, problem.msg) end
  if type(value) ~= "table" then return bad(path, "must hold a map, holds a bare value") end
  return value
end

local function reader_below(dir)
  return function(name)
    local root, problem = fs.realpath(dir)
    if not root then return nil, problem.msg end
    if name:sub(1, 1) == "/" then return nil, "`from` must be relative to the task's folder: " .. name end
    local file
    file, problem = folder.read_file(root, dir .. "/" .. name)
    return file, problem and problem.msg
  end
end

local function load_file(path)
  local raw, problem = read_table(path)
  if not raw then return nil, problem end
  return shape.build(raw, { where = path, read_from = reader_below(parent_of(path)) })
end

local function load_folder(dir, file)
  local raw, problem = read_table(file)
  if not raw then return nil, problem end
  local trees = {}
  for _, name in ipairs { "files", "hidden", "solution" } do
    trees[name], problem = folder.read_tree(dir .. "/" .. name)
    if not trees[name] then return nil, problem end
  end
  local task
  task, problem = shape.build(raw, { where = file, folder = trees, read_from = reader_below(dir) })
  if task then task.dir = dir end
  return task, problem
end

local function task_file_in(dir)
  local found
  for _, name in ipairs(NAMES) do
    if fs.stat(dir .. "/" .. name) then
      if found then return bad(dir, ("holds both %s and %s"):format(found, name)) end
      found = name
    end
  end
  if not found and fs.stat(dir .. "/task.toml") then
    return bad(dir, "is a task in Harbor's form: agentbox run takes it, and agentbox task import makes one of ours of it")
  end
  if not found then return bad(dir, "no task.json or task.yaml in this folder") end
  return dir .. "/" .. found
end

--- Loads a task from a folder or a file. The path of a folder's task.json loads the folder.
---@async
---@param path string
---@return agentbox.Task? task
---@return agentbox.Err? err   # code `task`; the text names the file and the field
function M.load(path)
  if type(path) ~= "string" or path == "" then return bad("task", "the path is empty") end
  local st, problem = fs.stat(path)
  if not st then return unread(path, problem, "no such file or folder") end
  if st.type == "dir" then
    local dir = #path > 1 and path:gsub("/+$", "") or path
    local file
    file, problem = task_file_in(dir)
    if not file then return nil, problem end
    return load_folder(dir, file)
  end
  local name = path:match("[^/]*$")
  for _, known in ipairs(NAMES) do
    if name == known then return load_folder(parent_of(path), path) end
  end
  return load_file(path)
end

--- Makes a task from Lua; `from` names files below the current folder. A mistake raises and blames the caller's line.
---@async
---@param fields table    # the keys of task.json
---@return agentbox.Task
function M.new(fields)
  if type(fields) ~= "table" then error("task.new: expects a table", 2) end
  local task, problem = shape.build(fields, { where = "task.new", read_from = reader_below "." })
  if not task then error(problem.msg, 2) end
  return task
end

--- A task, whatever was given: a path, a table of fields or a task.
---@async
---@param what string|table
---@return agentbox.Task?
---@return agentbox.Err?
function M.resolve(what)
  if type(what) == "string" then return M.load(what) end
  if type(what) ~= "table" then return nil, err.new("task", "task must be a path or a table") end
  if what.hash and what.files and what.setup_commands then return what end
  return shape.build(what, { where = tostring(what.task_id or "task") })
end

local function walk(dir, found, loose, depth, deepest)
  local entries, problem = fs.list(dir)
  if not entries then return nil, problem end
  local is_task = false
  for _, entry in ipairs(entries) do
    for _, name in ipairs(NAMES) do is_task = is_task or entry.name == name end
  end
  if is_task then
    found[#found + 1] = dir
    return true
  end
  for _, entry in ipairs(entries) do
    local path = dir .. "/" .. entry.name
    if entry.type == "dir" and depth < deepest then
      local ok
      ok, problem = walk(path, found, loose, depth + 1, deepest)
      if not ok then return nil, problem end
    elseif depth == 0 and entry.type ~= "dir" and entry.name:match("%.json$") then
      loose[#loose + 1] = path
    end
  end
  return true
end

--- Loads every task below a folder: each folder with a task.json or task.yaml, then plain *.json at the top. The
--- order is that of the names. A broken task fails the whole load and is named; an id given twice too.
---@async
---@param dir string
---@param opts? { nested?: boolean }    # nested = false: only the folder's own tasks, not those of folders in it
---@return agentbox.Task[]? tasks
---@return agentbox.Err? err
function M.dir(dir, opts)
  local nested = schema.options(opts, { nested = { "boolean", default = true } }, "task.dir").nested
  local found, loose, tasks, seen = {}, {}, {}, {}
  local ok, problem = walk((#dir > 1 and dir:gsub("/+$", "") or dir), found, loose, 0, nested and math.huge or 1)
  if not ok then return unread(dir, problem, "no such folder") end
  table.move(loose, 1, #loose, #found + 1, found)
  for _, path in ipairs(found) do
    local task
    task, problem = M.load(path)
    if not task then return nil, problem end
    if seen[task.task_id] then
      return bad(path, ('task_id "%s" is taken by %s'):format(task.task_id, seen[task.task_id]))
    end
    seen[task.task_id] = path
    tasks[#tasks + 1] = task
  end
  return tasks
end

local ORDER = { "task_id", "description", "starter_files", "setup_commands", "verifier", "metadata",
  "system_prompt_extra", "allowed_tools", "max_steps", "timeout_s", "workspace", "image", "limits", "env", "network", "params", "data",
  "artifacts" }
local PARITY_KEYS = { system_prompt_extra = true, allowed_tools = true, max_steps = true }
local VERIFIER_ORDER = { "type", "command", "path", "success_exit_code", "timeout_s", "reward_success",
  "reward_failure", "parse_stdout", "name", "sandbox", "protect", "expect", "score", "user", "params" }
local VERIFIER_PARITY = { command = true, path = true }

local function ordered(source, order, always)
  local out = json.object {}
  for _, key in ipairs(order) do
    local value = source[key]
    if value == nil and always[key] then value = json.null end
    if value ~= nil then out[key] = value end
  end
  return out
end

--- The task as one table in AgentBox's order of fields. Text files of mode 0644 are `starter_files`; a file that is
--- not UTF-8 or has another mode, and the hidden and solution trees, are left to the caller's folder.
---@param task agentbox.Task
---@return table
function M.to_table(task)
  local plain = setmetatable({}, { __index = task })
  local starter = json.object {}
  for _, path in ipairs(schema.names(task.files)) do
    local file = task.files[path]
    if utf8.len(file.bytes) and file.mode == 420 then starter[path] = file.bytes end
  end
  plain.starter_files = starter
  if #task.artifacts == 0 then plain.artifacts = json.null end
  local out = ordered(plain, ORDER, PARITY_KEYS)
  if #task.artifacts == 0 then out.artifacts = nil end
  out.verifier = ordered(task.verifier, VERIFIER_ORDER, VERIFIER_PARITY)
  if out.verifier.sandbox == "fresh" then out.verifier.sandbox = nil end
  if out.verifier.score == "all" then out.verifier.score = nil end
  return out
end

--- Writes a task as a folder that `load` reads back to the same hash.
---@async
---@param task agentbox.Task
---@param dir string         # made if missing; existing files of the same names are replaced
---@return true?
---@return agentbox.Err?
function M.save(task, dir)
  local fields = M.to_table(task)
  fields.starter_files = json.object {}
  local ok, problem = fs.mkdir(dir, true)
  if not ok and problem.code ~= "exists" then return nil, problem end
  for _, tree in ipairs { "files", "hidden", "solution" } do
    for path, file in pairs(task[tree]) do
      local target = ("%s/%s/%s"):format(dir, tree, path)
      ok, problem = fs.mkdir(parent_of(target), true)
      if not ok and problem.code ~= "exists" then return nil, problem end
      ok, problem = fs.write(target, file.bytes, { mode = file.mode })
      if not ok then return nil, problem end
    end
  end
  return fs.write(dir .. "/task.json", json.encode(fields, { indent = 2 }) .. "\n")
end

--- The task as one table with all its files, which `resolve` reads back to the same hash.
---@param task agentbox.Task
---@return table
function M.to_inline(task) return require "agentbox.task.inline".complete(M.to_table(task), task) end

--- Writes tasks as a file of lines (JSONL), each a whole task.
---@async
---@param tasks agentbox.Task[]
---@param path string
---@return true?
---@return agentbox.Err?
function M.save_lines(tasks, path)
  local objects = {}
  for i, one in ipairs(tasks) do objects[i] = M.to_inline(one) end
  return require "agentbox.task.inline".write(objects, path)
end

--- Reads such a file. A bad line fails the whole load and is named.
---@async
---@param path string
---@return agentbox.Task[]? tasks
---@return agentbox.Err? err    # code `task`
function M.load_lines(path) return require "agentbox.task.inline".read(path) end

M.safe_name = shape.safe_name

return M

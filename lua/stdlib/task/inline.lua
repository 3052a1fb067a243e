--- task/inline.lua: a whole task in one JSON object, and many in a file of lines.
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local shape = require "agentbox.task.shape"

local M = {}

local MAX_LINES = 4 << 30

-- A file as an entry: its text alone when nothing else is to say.
local function entry_of(file)
  local plain = utf8.len(file.bytes) ~= nil
  if plain and file.mode == 420 then return file.bytes end
  local entry = json.object {}
  entry[plain and "text" or "base64"] = plain and file.bytes or shape.to_base64(file.bytes)
  if file.mode ~= 420 then entry.mode = ("%04o"):format(file.mode) end
  return entry
end

--- Adds to a task's fields the files that they lack.
---@param fields table              # as task.to_table gives them
---@param task agentbox.Task
---@return table
function M.complete(fields, task)
  for _, tree in ipairs { "files", "hidden", "solution" } do
    local entries = json.object {}
    for _, path in ipairs(schema.names(task[tree])) do
      if tree ~= "files" or not fields.starter_files[path] then entries[path] = entry_of(task[tree][path]) end
    end
    if next(entries) then fields[tree] = entries end
  end
  return fields
end

--- Writes one object a line; the file is there whole or not at all.
---@async
---@param objects table[]
---@param path string
---@return true?
---@return agentbox.Err?
function M.write(objects, path)
  local lines = {}
  for i, one in ipairs(objects) do lines[i] = json.encode(one) .. "\n" end
  return fs.write(path, table.concat(lines))
end

--- Reads a file of tasks, one a line; blank lines are nothing. A bad line fails the whole and is named.
---@async
---@param path string
---@return agentbox.Task[]? tasks
---@return agentbox.Err? err
function M.read(path)
  local text, problem = fs.read(path, MAX_LINES)
  if not text then return nil, problem end
  local tasks, number = {}, 0
  for line in text:gmatch "[^\n]*" do
    number = number + 1
    if line:find "%S" then
      local where = ("%s:%d"):format(path, number)
      local raw, bad = json.decode(line)
      if type(raw) ~= "table" then return nil, err.new("task", where .. ": " .. (bad and bad.msg or "is no object")) end
      tasks[#tasks + 1], problem = shape.build(raw, { where = where })
      if problem then return nil, problem end
    end
  end
  return tasks
end

return M

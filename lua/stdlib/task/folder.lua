--- task/folder.lua: reads the trees of a task's folder (files/, hidden/, solution/) as bytes.
---
--- A link is followed to a file inside the same tree and refused otherwise; a pipe, socket or device is refused
--- without being opened.
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local shape = require "agentbox.task.shape"

local M = {}

local function bad(path, text) return nil, err.new("task", path .. ": " .. text) end

--- The error for what could not be read: the task's, unless this machine or process has run out of something.
---@param path string
---@param problem agentbox.Err
---@param missing? string     # what to say when it is not there
---@return nil
---@return agentbox.Err
function M.unread(path, problem, missing)
  if err.infra(problem) then return nil, err.wrap(problem, path) end
  return bad(path, missing and problem.code == "notfound" and missing or problem.msg)
end

local function git_mode(mode) return mode & 73 ~= 0 and 493 or 420 end -- 0755 when any x bit, else 0644

--- Reads one file under `root`, following links that stay inside.
---@param root string      # already resolved
---@param path string
---@return agentbox.TaskFile?
---@return agentbox.Err?
function M.read_file(root, path)
  local real, problem = fs.realpath(path)
  if not real then return M.unread(path, problem, "no such file") end
  if real ~= root and real:sub(1, #root + 1) ~= root .. "/" then
    return bad(path, "leads out of the task's folder (to " .. real .. ")")
  end
  local st
  st, problem = fs.stat(real)
  if not st then return M.unread(real, problem) end
  if st.type == "dir" then return bad(path, "is a link to a folder, which is not supported") end
  if st.type ~= "file" then return bad(path, "is a " .. st.type .. ", not a file") end
  local bytes
  bytes, problem = fs.read(real, shape.MAX_FILE_BYTES)
  if not bytes then return M.unread(path, problem) end
  return { bytes = bytes, mode = git_mode(st.mode) }
end

local function read_into(out, root, dir, prefix, count)
  local entries, problem = fs.list(dir)
  if not entries then return M.unread(dir, problem) end
  for _, entry in ipairs(entries) do
    local path, rel = dir .. "/" .. entry.name, prefix .. entry.name
    local st
    st, problem = fs.lstat(path)
    if not st then return M.unread(path, problem) end
    if st.type == "dir" then
      local ok
      ok, problem = read_into(out, root, path, rel .. "/", count)
      if not ok then return nil, problem end
    else
      count[1] = count[1] + 1
      if count[1] > shape.MAX_FILES then return bad(root, ("more than %d files"):format(shape.MAX_FILES)) end
      out[rel], problem = M.read_file(root, path)
      if not out[rel] then return nil, problem end
    end
  end
  return true
end

--- Reads a whole tree; a missing one is empty.
---@param dir string
---@return table<string, agentbox.TaskFile>? files
---@return agentbox.Err?
function M.read_tree(dir)
  local st, problem = fs.stat(dir)
  if not st then
    if problem.code == "notfound" then return {} end
    return M.unread(dir, problem)
  end
  if st.type ~= "dir" then return bad(dir, "is not a folder") end
  local root
  root, problem = fs.realpath(dir)
  if not root then return M.unread(dir, problem) end
  local out = {}
  local ok
  ok, problem = read_into(out, root, dir:gsub("/+$", ""), "", { 0 })
  if not ok then return nil, problem end
  return out
end

return M

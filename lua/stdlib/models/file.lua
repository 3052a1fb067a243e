--- models/file.lua: models that a file holds, by the names of a command line: `lua:FILE` is a script that returns a model, a
--- function or a list of turns; `scripted:FILE` a list of turns, in Lua or JSON.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local model = require "agentbox.model"

local M = {}

local MAX_BYTES = 64 << 20

---@param name string
---@return boolean
function M.is(name) return name:find "^scripted:." ~= nil or name:find "^lua:." ~= nil end

local function run(path)
  local chunk, msg = loadfile(path, "t")
  if not chunk then return nil, err.new("usage", msg) end
  local ok, what = pcall(chunk)
  if not ok then return nil, err.is(what) and what or err.new("usage", tostring(what)) end
  return what
end

local function read(path)
  local text, problem = fs.read(path, MAX_BYTES)
  if not text then return nil, err.new("usage", ("cannot read the script %s: %s"):format(path, problem.msg)) end
  local turns
  turns, problem = json.decode(text)
  if problem then return nil, err.new("usage", ("%s: %s"):format(path, problem.msg)) end
  return turns
end

---@async
---@param name string   # for which M.is is true
---@return agentbox.Model?
---@return agentbox.Err? err   # code `usage`, unless the script raised another
function M.open(name)
  local kind, path = name:match "^(%a+):(.+)$"
  local is_script = kind == "lua" or path:find "%.lua$"
  local made, problem = (is_script and run or read)(path)
  if problem then return nil, problem end
  if kind == "lua" then return model.resolve(made) end
  if type(made) ~= "table" then return nil, err.new("usage", path .. ": a list of turns is expected") end
  return model.scripted(made)
end

return M

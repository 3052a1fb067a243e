--- Finding runs and telling how they are: a run's folder has its lock, run.json and progress.json.
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local registry = require "agentbox.runner.registry"
local time = require "agentbox.sys.time"

local M = {}

local function read_object(path)
  local text = fs.read(path, 16 << 20)
  local doc = text and json.decode(text)
  return json.is_object(doc) and doc or nil
end

-- Somebody holds the lock as long as the engine lives.
local function is_live(run_dir)
  if not fs.exists(run_dir .. "/lock") then return false end
  local lock, err = fs.lock(run_dir .. "/lock")
  if lock then lock:close() end
  return err ~= nil and err.code == "busy"
end

local function number(doc, name) return doc and math.tointeger(doc[name]) end

---@class agentbox.cli.RunState
---@field run string
---@field run_dir string
---@field state "running"|"paused"|"draining"|"stopping"|"over"|"killed"
---@field progress? table

---How a run is.
---@async
---@param run_dir string
---@return agentbox.cli.RunState? state
---@return table? err
function M.look(run_dir)
  local doc = read_object(run_dir .. "/run.json")
  if not doc then return nil, { code = "notfound", msg = run_dir .. ": no run here (no run.json)" } end
  local progress = read_object(run_dir .. "/progress.json")
  local live = is_live(run_dir)
  local state = live and (progress and progress.state or "running") or "killed"
  if live and state == "running" and progress and progress.paused then state = "paused" end
  if not live and progress and progress.state == "over" then state = progress.why and "stopped" or "over" end
  return {
    run = tostring(doc.run), run_dir = run_dir, state = state, pid = live and number(progress, "pid") or nil,
    started = tonumber(doc.started), progress = progress,
  }
end

local function below(dir, into)
  for _, entry in ipairs(fs.list(dir) or {}) do
    local path = dir .. "/" .. entry.name
    if entry.type == "dir" and fs.exists(path .. "/run.json") then into[#into + 1] = path end
  end
end

---The runs in some folders, or those of this machine that go on or were killed. What is left of runs that are over or gone
---is cleared away.
---@async
---@param dirs string[]
---@return agentbox.cli.RunState[]
function M.list(dirs)
  local paths, out = {}, {}
  for _, dir in ipairs(dirs) do
    if fs.exists(dir .. "/run.json") then paths[#paths + 1] = dir else below(dir, paths) end
  end
  if #dirs == 0 then
    for _, entry in ipairs(registry.list()) do
      local found = M.look(entry.run_dir)
      if found and found.state ~= "over" and found.state ~= "stopped" then
        paths[#paths + 1] = entry.run_dir
      else
        fs.remove(entry.path)
      end
    end
  end
  local seen = {}
  for _, path in ipairs(paths) do
    path = fs.realpath(path) or path
    local found = not seen[path] and M.look(path)
    seen[path] = true
    if found then out[#out + 1] = found end
  end
  table.sort(out, function(a, b) return (a.started or 0) < (b.started or 0) end)
  return out
end

---The folder of a run that somebody named: by its path, by its id below `out`, or by the beginning of the id of one that
---goes on.
---@async
---@param word string
---@param out string
---@return string? run_dir
---@return table? err
function M.find(word, out)
  local path = word:gsub("(.)/+$", "%1")
  for _, one in ipairs { path, ("%s/%s"):format(out, require "agentbox.store".safe_name(path)) } do
    if fs.exists(one .. "/run.json") then return one end
  end
  local found = {}
  for _, entry in ipairs(registry.list()) do
    if word ~= "" and tostring(entry.run):sub(1, #word) == word then found[#found + 1] = entry.run_dir end
  end
  if #found == 1 then return found[1] end
  return nil, { code = "notfound", msg = ("no run '%s': neither a run's folder, nor a run below %s, nor one that goes on"):format(word, out),
    hint = "See agentbox ps, or agentbox ps DIR for those that ended." }
end

---Where a command that reads records looks: what is there under that name, or else the run that it names.
---@async
---@param word string
---@return string path
function M.place(word)
  if word == "" or fs.exists(word) then return word end
  return M.find(word, "trajectories") or word
end

---Seconds since a run began.
---@param state agentbox.cli.RunState
---@return number
function M.age_s(state) return math.max(0, time.now() - (state.started or time.now())) end

return M

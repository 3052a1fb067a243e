--- Which runs this machine has, for people who look for them: one small file per run that is going on, in a folder of the
--- user's own, and in the run's folder how far it is.
---
--- The file goes when the run is over. One that a killed engine left tells that the run can be resumed.
local fs = require "agentbox.sys.fs"
local gate = require "agentbox.async.gate"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local time = require "agentbox.sys.time"

local M = {}

-- Made by us, for us alone; in a folder where others may write, somebody else's is not used.
local function folder()
  local base = os_.env "XDG_RUNTIME_DIR"
  local dir = base and base ~= "" and base .. "/agentbox-runs" or ("/tmp/agentbox-runs-%d"):format(os_.uid())
  fs.mkdir(dir)
  local stat = fs.lstat(dir)
  if not stat or stat.type ~= "dir" or stat.uid ~= os_.uid() then return nil end
  return dir
end

local function entry_of(run)
  local dir = folder()
  return dir and ("%s/%s-%d.json"):format(dir, run.run_dir:match "[^/]*$", os_.pid())
end

--- Notes a run that has begun. What cannot be noted is only harder to find.
---@async
---@param run agentbox.Run
function M.add(run)
  local path = entry_of(run)
  if not path then return end
  local doc = json.object {}
  doc.run, doc.run_dir, doc.pid = run.run_id, fs.realpath(run.run_dir) or run.run_dir, os_.pid()
  doc.started = time.now()
  if fs.write(path, json.encode(doc) .. "\n", { mode = 384 }) then run.registered = path end
end

---@async
---@param run agentbox.Run
function M.remove(run)
  if run.registered then fs.remove(run.registered) end
  run.registered = nil
end

--- Writes how far a run is into its folder.
---@async
---@param run agentbox.Run
function M.tell(run)
  run.telling = run.telling or gate.new(1)
  local _ <close> = run.telling:enter() -- luacheck: ignore
  if run.told_end then return true end -- or the last but one would be the last word
  run.told_end = run.ended
  local stats, doc = run:stats(), json.object {}
  local numbers = stats.numbers
  doc.schema, doc.run, doc.pid, doc.t, doc.state = "agentbox.progress/1", run.run_id, os_.pid(), time.now(), stats.state
  doc.rollouts, doc.solved, doc.scored, doc.unscored = numbers.rollouts, numbers.solved, numbers.scored, numbers.unscored
  doc.running, doc.rate, doc.wall_s, doc.total = stats.running, stats.rate, numbers.wall_s, run.opts.total
  doc.by_class = json.object(numbers.by_class)
  doc.why, doc.paused = run.why, stats.paused or nil
  return fs.write(run.run_dir .. "/progress.json", json.encode(doc) .. "\n")
end

--- The entries: run, run_dir, pid, started, path.
---@async
---@return table[]
function M.list()
  local dir, out = folder(), {}
  for _, file in ipairs(dir and fs.list(dir) or {}) do
    local path = dir .. "/" .. file.name
    local text = file.name:find "%.json$" and fs.read(path, 65536)
    local doc = text and json.decode(text)
    if json.is_object(doc) and type(doc.run_dir) == "string" then
      out[#out + 1] = { run = doc.run, run_dir = doc.run_dir, pid = doc.pid, started = doc.started, path = path }
    end
  end
  return out
end

return M

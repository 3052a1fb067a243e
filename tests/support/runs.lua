--- Runs without sandboxes for the tests of the runner, and what the tests look at.
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local model = require "agentbox.model"
local runner = require "agentbox.runner"
local traj = require "agentbox.traj"

local M = {}

function M.task(id, fields)
  local out = { task_id = id, description = "d", verifier = { type = "command", command = "true" } }
  for key, value in pairs(fields or {}) do out[key] = value end
  return out
end

function M.tasks(n, fields)
  local list = {}
  for i = 1, n do list[i] = M.task("t" .. i, fields) end
  return list
end

function M.done() return model.scripted { "done" } end

--- A run without sandboxes, unless something else is said.
function M.start(opts)
  local all = { sandbox = { backend = "none" }, model = M.done(), retry_wait_s = 0, concurrency = 8 }
  for key, value in pairs(opts) do all[key] = value end
  return assert(runner.start(all))
end

function M.gather(run)
  local list = {}
  for group in run:groups() do
    list[#list + 1] = group
    assert(run:ack(group))
  end
  return list
end

function M.ids(groups)
  local list = {}
  for i, group in ipairs(groups) do list[i] = group.id end
  table.sort(list)
  return list
end

--- Counts how many are inside at once.
function M.counter()
  local self = { now = 0, peak = 0, entered = 0 }
  function self.enter()
    self.now, self.entered = self.now + 1, self.entered + 1
    self.peak = math.max(self.peak, self.now)
    return setmetatable({}, { __close = function() self.now = self.now - 1 end })
  end
  return self
end

function M.tmp()
  local dir = assert(fs.tmpdir "agentbox-runner-")
  return setmetatable({ path = dir }, { __close = function() assert(fs.remove(dir, true)) end })
end

function M.by_slot(dir)
  local out = {}
  for t in traj.each(dir) do
    local group = t.line.group
    if json.type(group) == "raw" then group = group:decode() end
    local slot = ("%s/%d"):format(group.id, group.index)
    out[slot] = out[slot] or {}
    table.insert(out[slot], t)
  end
  return out
end

--- A model that is told which member of which group asks.
function M.by_member(fn)
  return model.fn(function(request)
    local name, index = request.session:match "(%w+)/(%d+)"
    return fn(name, tonumber(index), request)
  end)
end

return M

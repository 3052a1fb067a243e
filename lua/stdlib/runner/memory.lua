--- The store of a run without a folder: groups and their trajectories, until they are acknowledged.
local M = {}

local Memory = {}
Memory.__index = Memory

--- As agentbox.Store, for as long as the process lives.
---@return table
function M.new()
  return setmetatable({ _groups = {}, _trajs = {}, _cursor = 0, _closed = 0 }, Memory)
end

function Memory:append(traj)
  self._trajs[traj.id] = traj
  return {}
end

--- What does not become part of a group is let go.
function Memory:forget(id) self._trajs[id] = nil end

function Memory:group(facts)
  self._closed = self._closed + 1
  facts.seq = self._closed
  self._groups[facts.seq] = facts
  return facts.seq
end

function Memory:groups(after)
  local n = math.max(after or 0, self._cursor)
  return function()
    n = n + 1
    return self._groups[n]
  end
end

function Memory:ack(seq)
  for n = self._cursor + 1, seq do
    for _, id in ipairs(self._groups[n].members) do self._trajs[id] = nil end
    self._groups[n] = nil
  end
  self._cursor = math.max(self._cursor, seq)
  return true
end

function Memory:cursor() return self._cursor, self._closed end
function Memory.ahead() return {} end

--- A trajectory of a group that was not acknowledged.
function Memory:load(id) return self._trajs[id] end

function Memory.event() return true end
function Memory.finished() return {} end
function Memory.close() end

return M

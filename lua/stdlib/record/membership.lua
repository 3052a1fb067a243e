--- The group that a rollout belongs to, for all who put groups together: exports, the best of a group, rows of training.
---
--- What a resumed run adds to a group is planned as a group of its own (`fix+8`), so that a record's own word is enough.
local json = require "agentbox.json"

---@param t agentbox.Traj
---@return string id        # of the planned group; of a rollout that is in none, its task's
---@return integer index    # its place in there, from 0
---@return integer? size    # how many members were planned
---@return string key       # RUN/GROUP, as another run may have a group of that id; without a group, its task's id
return function(t)
  local group = json.plain(t.line.group)
  if not group then return t.task_id, 0, nil, t.task_id end
  return group.id, math.tointeger(group.index) or 0, math.tointeger(group.size), ("%s/%s"):format(t.run_id, group.id)
end

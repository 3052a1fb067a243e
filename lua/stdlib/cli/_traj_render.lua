--- `agentbox traj render PATH`.
local out = require "agentbox.cli._out"
local render = require "agentbox.render"

local M = {}

local function size_of(bytes)
  return bytes < 1e6 and ("%.0f KB"):format(bytes / 1e3) or ("%.1f MB"):format(bytes / 1e6)
end

--- Renders, and gives the exit status.
---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.run(args)
  local opts = { bodies_mb = args.bodies, model = args.model_id, compare = args.compare }
  local made, problem = render.file(args.path, args.out or "traj.html", opts)
  if not made then return nil, problem end
  io.stdout:write(("%s: %s, %d trajectories, %d of them whole\n"):format(out.line(made.path), size_of(made.bytes),
    made.trajectories, made.bodies))
  if made.damaged > 0 then
    io.stderr:write(("agentbox: traj render: %d lines could not be read and are left out; see agentbox traj check\n")
      :format(made.damaged))
  end
  return 0
end

return M

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
  if made.damaged > 0 then
    io.stderr:write(("agentbox: traj render: %s could not be read and stayed out; see agentbox traj check\n")
      :format(made.damaged == 1 and "1 line" or made.damaged .. " lines"))
  end
  io.stdout:write(("%s: %s, %s, %d of them whole\n"):format(out.line(made.path), size_of(made.bytes),
    made.trajectories == 1 and "1 trajectory" or made.trajectories .. " trajectories", made.bodies))
  return 0
end

return M

--- `agentbox prune`: removes what engines left behind that died without cleaning up.
local M = {
  name = "prune",
  summary = "remove what dead engines left behind",
  description = "Removes processes, control groups and files of engines that are no longer alive. What a living engine "
      .. "uses, this user's or another's, is left alone.",
  options = { { "--json", "print JSON" } },
}

function M.run(args)
  local found, err = require "agentbox.sys.sandbox".sweep {}
  if not found then return nil, err end
  if args.json then
    io.stdout:write(require "agentbox.json".encode(found), "\n")
  else
    io.stdout:write(("removed %d\n"):format(found.removed))
  end
  return 0
end

return M

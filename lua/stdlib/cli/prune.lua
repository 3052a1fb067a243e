--- `agentbox prune`: removes what engines left behind that died without cleaning up.
local M = {
  name = "prune",
  summary = "remove what dead engines left behind",
  description = "Removes processes, control groups, files, and containers of Docker and podman, of engines that are no "
      .. "longer alive. What a living engine uses, this user's or another's, is left alone.",
  options = { { "-n --dry-run", "only count" }, { "--json", "print JSON" } },
}

function M.run(args)
  local dry = args.dry_run == true
  local n = require "agentbox.sys.sandbox".sweep(dry)
  for _, backend in ipairs { "none", "docker", "podman" } do
    n = n + (require("agentbox.backends." .. backend).sweep(dry) or 0)
  end
  if args.json then
    io.stdout:write(require "agentbox.json".encode { [args.dry_run and "found" or "removed"] = n }, "\n")
  else
    io.stdout:write(("%s %d\n"):format(args.dry_run and "found" or "removed", n))
  end
  return 0
end

return M

--- `agentbox version`: the bare version, as the reference prints it.
local M = {
  name = "version",
  summary = "print the version",
  options = { { "--json", "print JSON" } },
}

function M.run(args)
  local version = require "agentbox.sys.os".version
  if args.json then
    io.stdout:write(require "agentbox.json".encode { version = version, lua = _VERSION }, "\n")
  else
    io.stdout:write(version, "\n")
  end
  return 0
end

return M

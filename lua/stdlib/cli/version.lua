--- `agentbox version`: the bare version, as the reference prints it.
local M = {
  name = "version",
  summary = "print the version",
  options = { { "--json", "print what the binary was built from, as JSON" } },
}

function M.run()
  io.stdout:write("0.1.0\n")
  return 0
end

return M

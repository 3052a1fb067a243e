--- run_tests: the test suite, or another command that checks the work.
local command_text = require "agentbox.tool.command_text"

local TIMEOUT_S = 120

return require("agentbox.tool").define {
  api = 1,
  name = "run_tests",
  description = "Run the test suite and return its exit code and output.",
  parameters = {
    { "command", "string", "Test command for /bin/sh.", default = "python -m pytest -q" },
  },
  timeout_s = math.huge,
  run = function(ctx, args)
    return command_text.run(ctx, args.command, TIMEOUT_S)
  end,
}

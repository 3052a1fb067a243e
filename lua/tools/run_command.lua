--- run_command: a shell command in the workspace.
local command_text = require "agentbox.tool.command_text"

return require("agentbox.tool").define {
  api = 1,
  name = "run_command",
  description = "Run a shell command in the workspace and return its exit code and output.",
  parameters = {
    { "command", "string", "Command line for /bin/sh." },
    { "timeout_s", "number", "Seconds after which the command is killed.", default = 60 },
  },
  timeout_s = math.huge, -- the command's own limit is the one that counts
  run = function(ctx, args)
    return command_text.run(ctx, args.command, args.timeout_s)
  end,
}

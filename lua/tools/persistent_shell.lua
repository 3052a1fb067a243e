--- persistent_shell: commands in one shell, whose state stays between calls.
local command_text = require "agentbox.tool.command_text"

return require("agentbox.tool").define {
  api = 1,
  name = "persistent_shell",
  description = "Run a command in a shell that stays open: directory, variables, functions and background jobs are kept for "
      .. "the next call. Returns its exit code and output (both streams together).",
  parameters = {
    { "command", "string", "Command for the shell; may have several lines." },
    { "timeout_s", "number", "Seconds after which the command is killed.", default = 60 },
  },
  exclusive = true,
  timeout_s = math.huge, -- the command's own limit is the one that counts
  open = function(ctx)
    return ctx.sandbox:shell { cwd = ctx.workdir or ctx.workspace, user = ctx.user }
  end,
  run = function(ctx, args, shell)
    return command_text.run_in(ctx, shell, args.command, args.timeout_s)
  end,
  close = function(shell) shell:close() end,
}

--- `agentbox help [COMMAND...]`, and the text of the root's and the groups' help.
local M = {
  name = "help",
  summary = "show the help of a command",
  arguments = { { "command", "a command, as in: help traj show", args = "*" } },
  options = {
    { "--markdown", "print every command as docs/cli.md" },
    { "--scdoc", "print the source of the manual page" },
  },
}

local function listing(rows)
  local width, out = 0, {}
  for _, row in ipairs(rows) do width = math.max(width, #row[1]) end
  for i, row in ipairs(rows) do out[i] = ("   %-" .. width .. "s   %s"):format(row[1], row[2]) end
  return table.concat(out, "\n")
end

---The help of `agentbox` itself.
---@return string
function M.root()
  local cli = require "agentbox.cli"
  return table.concat({
    "Usage: agentbox [-L DIR] <command> [options]",
    "",
    "Rollouts for training LLM agents: sandboxes, tools, verifiers, trajectories.",
    "",
    "Commands:",
    listing(cli.all()),
    "",
    "Options:",
    listing {
      { "-h, --help", "show this help and exit" },
      { "-V, --version", "print the version and exit" },
      { "-L, --lua <DIR>", "search DIR for Lua modules first (repeatable, the first one wins)" },
    },
    "",
    "Try 'agentbox <command> --help' for a command's options.",
    "",
  }, "\n")
end

---The help of a group such as `agentbox traj`.
---@param command table
---@param fullname string
---@return string
function M.group(command, fullname)
  local rows = {}
  for i, sub in ipairs(command.commands) do rows[i] = { sub.name, sub.summary } end
  return table.concat({
    ("Usage: %s <command> [options]"):format(fullname), "",
    command.description or command.summary, "",
    "Commands:", listing(rows), "",
    ("Try '%s <command> --help' for a command's options.\n"):format(fullname),
  }, "\n")
end

function M.run(args)
  if args.markdown or args.scdoc then
    local manual = require "agentbox.cli._manual"
    io.stdout:write(args.markdown and manual.markdown() or manual.scdoc())
    return 0
  end
  local argv = { table.unpack(args.command) }
  if #argv > 0 then argv[#argv + 1] = "--help" end
  return require "agentbox.cli".main(argv)
end

return M

--- `agentbox completion bash|zsh|fish`: made by argparse from the same tables as the help.
local parse = require "agentbox.cli._parse"

local M = {
  name = "completion",
  summary = "print a completion script for a shell",
  description = "Prints a completion script. For bash: agentbox completion bash > "
      .. "/etc/bash_completion.d/agentbox; for zsh: into a folder of fpath as _agentbox; "
      .. "for fish: into ~/.config/fish/completions/agentbox.fish.",
  arguments = { { "shell", "bash, zsh or fish" } },
}

local function add(parser, spec, summary)
  parser:summary(summary or spec.summary or ""):add_help(false)
  for _, sub in ipairs(spec.commands or {}) do
    add(parser:command(sub.name), sub)
  end
  if spec.commands then return end
  for _, argument in ipairs(spec.arguments or {}) do
    local element = parser:argument(argument[1])
    if argument.args then element:args(argument.args) end
  end
  for _, option in ipairs(parse.options(spec)) do
    local names, metavar, text = parse.split(option)
    local name = table.concat(names, " ")
    local element = metavar and parser:option(name):argname(metavar) or parser:flag(name)
    element:description(text)
    if option.choices then element:choices(option.choices) end
  end
end

local function whole_parser()
  local parser = require "argparse" "agentbox":add_help(false)
  local cli = require "agentbox.cli"
  for _, entry in ipairs(cli.commands) do
    add(parser:command(entry[1]), require(cli.module_of(entry[1])), entry[2])
  end
  return parser
end

function M.run(args)
  local parser = whole_parser()
  local make = { bash = "get_bash_complete", zsh = "get_zsh_complete", fish = "get_fish_complete" }
  local method = make[args.shell]
  if not method then
    return nil, { code = "usage", msg = ("no completion for '%s'; there is bash, zsh and fish"):format(args.shell) }
  end
  io.stdout:write(parser[method](parser))
  return 0
end

return M

--- The whole command line as a document: docs/cli.md and the manual page, from the tables behind --help.
local parse = require "agentbox.cli._parse"

local M = {}

local exit_statuses = {
  { "0", "done; a task was solved" },
  { "1", "done, not (all) solved, or a script raised an error" },
  { "2", "bad usage or bad input: an option, a task file, a configuration file" },
  { "3", "infrastructure: no sandbox, no model server, a full disk" },
  { "70", "a bug in agentbox" },
  { "130", "interrupted by Ctrl-C, after cleaning up" },
}

local environment = {
  { "AGENTBOX_CONFIG", "the configuration file; a file that does not exist is an error" },
  { "AGENTBOX_MODEL, AGENTBOX_BASE_URL, AGENTBOX_API_KEY", "the model; OPENAI_BASE_URL and OPENAI_API_KEY come after" },
  { "AGENTBOX_AGENT, AGENTBOX_TOOLS", "the agent and its tools" },
  { "AGENTBOX_BACKEND, AGENTBOX_IMAGE", "the sandbox" },
  { "AGENTBOX_OUT, AGENTBOX_SEED", "where trajectories go; the seed" },
  { "AGENTBOX_LUA", "overlay folders, separated by colons, after those of -L" },
  { "AGENTBOX_LOG_LEVEL", "debug, info, warn or error" },
  { "NO_COLOR", "no colours on a terminal" },
}

-- Every command that does something, with its full name, in the order of the help.
local function leaves()
  local out = {}
  local function walk(spec, fullname)
    if not spec.commands then
      out[#out + 1] = { name = fullname, spec = spec }
      return
    end
    for _, sub in ipairs(spec.commands) do walk(sub, fullname .. " " .. sub.name) end
  end
  local cli = require "agentbox.cli"
  for _, entry in ipairs(cli.commands) do
    walk(require(cli.module_of(entry[1])), entry[1])
  end
  return out
end

local bounds = { ["?"] = "[%s]", ["*"] = "[%s...]", ["+"] = "%s..." }

---As in "agentbox export [OPTIONS] TRAJ".
---@param leaf { name: string, spec: table }
---@return string
function M.synopsis(leaf)
  local out = { "agentbox", leaf.name }
  if leaf.spec.options then out[#out + 1] = "[OPTIONS]" end
  for _, argument in ipairs(leaf.spec.arguments or {}) do
    out[#out + 1] = (bounds[argument.args] or "%s"):format(argument[1]:upper())
  end
  if leaf.spec.rest then out[#out + 1] = "[ARGS...]" end
  return table.concat(out, " ")
end

local function option_rows(spec)
  local rows = {}
  for _, option in ipairs(spec.options or {}) do
    local names, metavar, text = parse.split(option)
    if option.choices then text = ("%s (%s)"):format(text, table.concat(option.choices, ", ")) end
    if option.default ~= nil then text = ("%s (default: %s)"):format(text, option.default) end
    rows[#rows + 1] = { names = names, metavar = metavar, text = text }
  end
  return rows
end

local function markdown_rows(out, head, rows)
  if #rows == 0 then return end
  out[#out + 1] = ("| %s | |\n| --- | --- |"):format(head)
  for _, row in ipairs(rows) do
    out[#out + 1] = ("| %s | %s |"):format(row[1], (row[2]:gsub("|", "\\|")))
  end
  out[#out + 1] = ""
end

local function markdown_leaf(out, leaf)
  local spec, rows = leaf.spec, {}
  out[#out + 1] = ("## %s\n\n    %s\n\n%s\n"):format(leaf.name, M.synopsis(leaf), spec.description or spec.summary)
  for _, argument in ipairs(spec.arguments or {}) do
    rows[#rows + 1] = { "`" .. argument[1]:upper() .. "`", argument[2] }
  end
  for _, row in ipairs(option_rows(spec)) do
    local value = row.metavar and " " .. row.metavar or ""
    rows[#rows + 1] = { ("`%s%s`"):format(table.concat(row.names, ", "), value), row.text }
  end
  markdown_rows(out, "argument or option", rows)
  if spec.epilog then out[#out + 1] = spec.epilog .. "\n" end
end

---docs/cli.md.
---@return string
function M.markdown()
  local out = {
    "# The command line",
    "",
    "This page is printed by `agentbox help --markdown`; the same text is in `man agentbox`.",
    "",
    "Data goes to stdout, progress and errors to stderr; progress is shown only when stderr is a terminal. "
        .. "Options may stand anywhere, `--name=value` and `--name value` are the same, `--` ends the options. "
        .. "Every command takes `-h`, `--help` and `-L DIR` (search DIR for Lua modules first; repeatable).",
    "",
    "A lab adds `agentbox mything` by adding `agentbox/cli/mything.lua` to an overlay: a module that returns "
        .. "`{ name, summary, arguments, options, run }`, as the built-in commands in `lua/stdlib/cli/` do.",
    "",
    "## Exit status",
    "",
  }
  markdown_rows(out, "status", exit_statuses)
  out[#out + 1] = "## Environment\n"
  markdown_rows(out, "variable", environment)
  for _, leaf in ipairs(leaves()) do markdown_leaf(out, leaf) end
  return (table.concat(out, "\n"):gsub("\n+$", "") .. "\n")
end

local function scd(text)
  return (text:gsub("[*_\\<>#~]", "\\%0"))
end

local function scd_leaf(out, leaf)
  local spec = leaf.spec
  out[#out + 1] = ("## %s\n\n*%s*\n\n%s\n"):format(scd(leaf.name), scd(M.synopsis(leaf)),
    scd(spec.description or spec.summary))
  for _, argument in ipairs(spec.arguments or {}) do
    out[#out + 1] = ("_%s_\n\t%s\n"):format(argument[1]:upper(), scd(argument[2]))
  end
  for _, row in ipairs(option_rows(spec)) do
    local names = {}
    for i, name in ipairs(row.names) do names[i] = "*" .. name .. "*" end
    local value = row.metavar and " _" .. scd(row.metavar) .. "_" or ""
    out[#out + 1] = ("%s%s\n\t%s\n"):format(table.concat(names, ", "), value, scd(row.text))
  end
  if spec.epilog then out[#out + 1] = scd(spec.epilog) .. "\n" end
end

local function scd_rows(out, title, rows)
  out[#out + 1] = "# " .. title .. "\n"
  for _, row in ipairs(rows) do out[#out + 1] = ("*%s*\n\t%s\n"):format(scd(row[1]), scd(row[2])) end
end

---docs/agentbox.1.scd, the source of the manual page.
---@return string
function M.scdoc()
  local out = {
    "agentbox(1)\n",
    "# NAME\n\nagentbox - rollouts for training LLM agents\n",
    "# SYNOPSIS\n\n*agentbox* [-L _DIR_] _COMMAND_ [_OPTIONS_]\n",
    "# DESCRIPTION\n\nRuns tasks in sandboxes with a language model, verifies and records them. Data goes to "
        .. "stdout, progress and errors to stderr. Every command takes *-h*, *--help* and *-L* _DIR_ (search DIR for "
        .. "Lua modules first; repeatable).\n",
    "# COMMANDS\n",
  }
  for _, leaf in ipairs(leaves()) do scd_leaf(out, leaf) end
  scd_rows(out, "EXIT STATUS", exit_statuses)
  scd_rows(out, "ENVIRONMENT", environment)
  out[#out + 1] = "# FILES\n\n_agentbox.yaml_, _agentbox.yml_, _agentbox.json_\n\tThe configuration: the nearest one, "
      .. "from the current directory up. *agentbox config show* tells where each value comes from.\n"
  return (table.concat(out, "\n"):gsub("\n+$", "") .. "\n")
end

return M

--- The commands: `agentbox NAME ...` runs agentbox.cli.NAME, so a lab adds a command by adding a file
--- (agentbox/cli/NAME.lua in an overlay). This file finds the command, parses, and turns what comes back
--- into an exit status and one line on stderr.
local suggest = require "agentbox.suggest"

local M = {}

---The built-in commands in the order of the help; nothing of a command is loaded before it is called.
M.commands = {
  { "run", "run one task and save its trajectory" },
  { "run-dir", "run the tasks of a folder, many at once" },
  { "bench", "make suites of tasks, run models on them, compare" },
  { "serve", "run tasks for a trainer that takes the groups" },
  { "ps", "list the runs of this machine" },
  { "tail", "follow what happens in a run" },
  { "view", "look at a run in a browser, while it goes on" },
  { "script", "run a Lua file with the library loaded" },
  { "repl", "type Lua interactively" },
  { "test", "run the Lua tests under a folder" },
  { "export", "write trajectories in a trainer's format" },
  { "rescore", "judge stored rollouts again" },
  { "traj", "look at a saved trajectory" },
  { "generate", "make tasks with a model, and check tasks" },
  { "sandbox", "run a command in a sandbox, check a backend" },
  { "task", "import and export tasks in Harbor's form" },
  { "image", "pull, import, build and remove images for sandboxes" },
  { "build-image", "build an image with Docker or podman" },
  { "doctor", "check this machine, its sandbox and a model server" },
  { "prune", "remove what dead engines left behind" },
  { "lua", "list, copy, compare and check Lua modules" },
  { "config", "show the configuration and where it comes from" },
  { "completion", "print a completion script for a shell" },
  { "version", "print the version" },
  { "help", "show the help of a command" },
}

---Exit statuses; documented in docs/cli.md.
M.status = { ok = 0, unsolved = 1, usage = 2, infra = 3, bug = 70, interrupted = 130 }

-- The rest is 1: the work was done and is not good.
local status_of_code = {
  usage = 2, task = 2, config = 2, badarg = 2, toobig = 2, notfound = 2, exists = 2, denied = 2, invalid = 2, parse = 2,
  busy = 2,
  sandbox = 3, network = 3, timeout = 3, model = 3, io = 3, full = 3, protocol = 3, unsupported = 3, nomem = 3, sys = 3,
}

local function names_of(list)
  local names = {}
  for i, command in ipairs(list) do names[i] = command[1] or command.name end
  return names
end

-- A message may quote a server or a sandbox: nothing in it may steer the terminal or show a key.
local function fail(status, line, next_step)
  io.stdout:flush()
  local out = require "agentbox.cli._out"
  if line:find "[^\n\t -~]" then line = out.clean(line) end
  local secret = package.loaded["agentbox.secret"]
  io.stderr:write(out.paint(2, "red", "agentbox:"), " ", secret and secret.redact(line) or line, "\n")
  if next_step then io.stderr:write(next_step, "\n") end
  return status
end

local function usage_error(line, fullname)
  return fail(M.status.usage, line, ("Try '%s --help' for more information."):format(fullname))
end

---Root options stand before the command's name.
local function root_options(argv)
  local i, overlays = 1, {}
  while argv[i] and argv[i]:sub(1, 1) == "-" do
    local word = argv[i]
    if word == "-h" or word == "--help" then return { help = true, overlays = overlays } end
    if word == "-V" or word == "--version" then return { version = true } end
    local dir = word:match "^%-L(.+)$" or word:match "^%-%-lua=(.+)$"
    if not dir and (word == "-L" or word == "--lua") then
      i = i + 1
      dir = argv[i]
      if not dir then return nil, ("option '%s' needs a folder"):format(word) end
    end
    if not dir then
      local hint = suggest.hint(word, { "--help", "--version", "--lua" })
      return nil, ("unknown option '%s'%s"):format(word, hint)
    end
    overlays[#overlays + 1] = dir
    i = i + 1
  end
  return { first = i, overlays = overlays }
end

---The module of a command: run-dir is agentbox.cli.run_dir.
---@param name string
---@return string
function M.module_of(name)
  return "agentbox.cli." .. name:gsub("%-", "_")
end

---The built-in commands, then those of the overlays: { name, summary }.
---@async
---@return { [1]: string, [2]: string }[]
function M.all()
  local all = table.move(M.commands, 1, #M.commands, 1, {})
  if #require "agentbox.loader".overlays() == 0 then return all end
  for _, module in ipairs(require "agentbox.overlay".list() or {}) do
    local name = module.name:match "^agentbox%.cli%.(%w[%w_]*)$"
    if name and module.from ~= "builtin" and not module.shadows then
      -- Somebody's broken command must not take the help away.
      local ok, command = pcall(require, module.name)
      all[#all + 1] = { (name:gsub("_", "-")), ok and type(command) == "table" and command.summary or "does not load" }
    end
  end
  return all
end

local function module_exists(module)
  local loader = require "agentbox.loader"
  if loader.builtin_source(module) then return true end
  for _, dir in ipairs(loader.overlays()) do
    if require "agentbox.sys.fs".stat(("%s/%s.lua"):format(dir, (module:gsub("%.", "/")))) then return true end
  end
  return false
end

local function load_command(name)
  local module = M.module_of(name)
  if name:match "^%w[%w%-]*$" and module_exists(module) then return require(module) end
  return nil, ("unknown command '%s'%s"):format(name, suggest.hint(name, names_of(M.all())))
end

-- Walks into groups: `agentbox traj show`.
local function descend(command, fullname, words)
  while command.commands do
    local word = words[1]
    if not word or word == "-h" or word == "--help" then return command, fullname, words, true end
    local found
    for _, sub in ipairs(command.commands) do
      if sub.name == word then found = sub end
    end
    if not found then
      local names = names_of(command.commands)
      return nil, fullname, ("%s: unknown command '%s'%s"):format(fullname:gsub("^agentbox ", ""), word,
        suggest.hint(word, names))
    end
    command, fullname = found, fullname .. " " .. word
    words = table.move(words, 2, #words, 1, {})
  end
  return command, fullname, words, false
end

---Turns an error value into the line and the exit status that a person gets.
---@param err any
---@return integer status
function M.report(err)
  if type(err) ~= "table" then return fail(M.status.bug, tostring(err)) end
  return fail(status_of_code[err.code] or M.status.unsolved, tostring(err.msg), err.hint)
end

-- Commands that must work whatever the configuration says.
local without_overlays = { version = true, help = true, completion = true }

local function check_folders(dirs)
  for _, dir in ipairs(dirs) do
    local stat = require "agentbox.sys.fs".stat(dir)
    if not stat or stat.type ~= "dir" then
      return nil, { code = "usage", msg = ("no such overlay folder: %s"):format(dir) }
    end
  end
  return dirs
end

-- Overlay folders that nobody named on the command line: lua_path of the configuration, then AGENTBOX_LUA.
local function configured_overlays(name)
  if without_overlays[name] then return {} end
  local config, err = require "agentbox.config".load()
  if not config then return nil, err end
  local dirs
  dirs, err = config:paths "lua_path"
  if not dirs then return nil, err end
  for dir in (require "agentbox.sys.os".env "AGENTBOX_LUA" or ""):gmatch "[^:]+" do dirs[#dirs + 1] = dir end
  return check_folders(dirs)
end

local function join(a, b)
  return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {}))
end

local function use_overlays(flags, configured)
  local dirs, err = check_folders(flags)
  if not dirs then return nil, err end
  require "agentbox.loader".set_overlays(join(dirs, configured))
  return true
end

-- Parses and runs one command, which is loaded by now.
local function run_parsed(command, fullname, words, overlays)
  local args, err = require "agentbox.cli._parse".parse(command, fullname, words)
  if err == "help" then
    io.stdout:write(args)
    return M.status.ok
  elseif not args then
    return usage_error((err.msg:gsub("^agentbox ", "")), fullname)
  end
  if #args.lua > 0 then
    local ok, bad = use_overlays(join(args.lua, overlays.flags), overlays.configured)
    if not ok then return M.report(bad) end
  end
  local status, failure = command.run(args)
  if failure then
    if failure.code == "usage" and not failure.hint then
      failure.hint = ("Try '%s --help' for more information."):format(fullname)
    end
    return M.report(failure)
  end
  return math.type(status) == "integer" and status or M.status.ok
end

local function run_command(argv, root)
  local words = table.move(argv, root.first + 1, #argv, 1, {})
  local name = argv[root.first]
  local configured, err = configured_overlays(name)
  if not configured then return M.report(err) end
  local ok
  ok, err = use_overlays(root.overlays, configured)
  if not ok then return M.report(err) end
  local command, problem = load_command(name)
  if not command then return usage_error(problem, "agentbox") end
  local fullname, is_group
  command, fullname, words, is_group = descend(command, "agentbox " .. name, words)
  if not command then return usage_error(words, fullname) end
  if is_group then
    io.stdout:write(require "agentbox.cli.help".group(command, fullname))
    return M.status.ok
  end
  return run_parsed(command, fullname, words, { flags = root.overlays, configured = configured })
end

local function dispatch(argv)
  local root, problem = root_options(argv)
  if not root then return usage_error(problem, "agentbox") end
  if root.version then return require "agentbox.cli.version".run {} end
  if root.help or not argv[root.first] then
    local configured = configured_overlays "-" -- a wrong file is reported by the commands that need it
    local ok, err = use_overlays(root.overlays or {}, configured or {})
    if not ok then return M.report(err) end
    io.stdout:write(require "agentbox.cli.help".root())
    return M.status.ok
  end
  return run_command(argv, root)
end

-- An error value that somebody raised is reported like one that was returned. Anything else is a defect: of the
-- lab when its code called, else ours.
local function on_raise(err)
  if type(err) == "table" and err.code then return err end
  local traces = require "agentbox.traceback"
  local of_lab = #traces.lines(2) > 0 or tostring(err):find "^error loading module"
  if of_lab then return { code = "defect", msg = traces.text(err) } end
  return { bug = debug.traceback(tostring(err), 2) }
end

-- Output that did not arrive is a failure, unless the reader went away on purpose.
local function flushed(status)
  local ok, msg, errno = io.stdout:flush()
  local broken_pipe = 32
  if ok or errno == broken_pipe then return status end
  return fail(status == M.status.ok and M.status.infra or status, "cannot write to standard output: " .. msg)
end

---Runs the command line; called in the main fiber.
---@param argv string[]   # argv[0] is the program
---@return integer status
function M.main(argv)
  local ok, status = xpcall(dispatch, on_raise, argv)
  if ok then return flushed(status) end
  if not status.bug then return M.report(status) end
  return fail(M.status.bug, status.bug, "This is a bug in agentbox; please report the lines above.")
end

return M

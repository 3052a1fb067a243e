--- `agentbox sandbox shell|ps|exec|diff|rm`: a sandbox that a person keeps, and uses from other terminals.
local named = require "agentbox.sandbox.named"
local os_ = require "agentbox.sys.os"
local out = require "agentbox.cli._out"

local M = {}

local SHELL = { "/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; fi; exec /bin/sh" }

-- ---------------------------------------------------------------- shell

-- The terminal gives every key as it is typed; the program in the sandbox has a terminal of its own, which does the rest.
local function raw_terminal()
  local pipe <close> = assert(io.popen("stty -g </dev/tty 2>/dev/null"))
  local saved = pipe:read "l"
  if not saved then return setmetatable({}, { __close = function() end }) end
  os.execute "stty raw -echo </dev/tty"
  return setmetatable({}, { __close = function() os.execute("stty " .. saved .. " </dev/tty") end })
end

local function pump_keys(process)
  while true do
    local bytes = os_.read_stdin(65536)
    if not bytes then return process:close_stdin() end
    if not process:write(bytes) then return end
  end
end

local function follow_size(process)
  while os_.wait_signal "WINCH" do
    local cols, rows = os_.winsize()
    if cols and cols > 0 and rows > 0 then process:resize(rows, cols) end
  end
end

local function beside(list)
  local fiber = require "agentbox.sys.fiber"
  local fibers = {}
  for i, fn in ipairs(list) do fibers[i] = fiber.spawn(fn) end
  return setmetatable({}, { __close = function()
    for _, one in ipairs(fibers) do one:cancel() end
    for _, one in ipairs(fibers) do one:join(5) end
  end })
end

local function with_terminal(sb, user)
  local cols, rows = os_.winsize()
  local process <close>, err = sb:spawn(SHELL, { pty = true, user = user, rows = rows, cols = cols,
    env = { TERM = os_.env "TERM" or "dumb" } })
  if not process then return nil, err end
  local _ <close> = raw_terminal()
  local _ <close> = beside { function() pump_keys(process) end, function() follow_size(process) end }
  while true do
    local bytes, problem = process:read()
    if problem then return nil, problem end
    if not bytes then break end
    os_.write(1, bytes)
  end
  return process:wait()
end

local function without_terminal(sb, user)
  local process <close>, err = sb:spawn(SHELL, { user = user })
  if not process then return nil, err end
  local _ <close> = beside {
    function() pump_keys(process) end,
    function()
      for bytes in function() return process:read_stderr() end do os_.write(2, bytes) end
    end,
  }
  for bytes in function() return process:read() end do os_.write(1, bytes) end
  local outcome, problem = process:wait()
  if outcome then os_.write(1, outcome.stdout); os_.write(2, outcome.stderr) end
  return outcome, problem
end

-- Without a shell: until somebody ends it, or Ctrl-C.
local function hold(fiber)
  local me = fiber.current()
  local _ <close> = beside { function() os_.wait_signal "INT" me:wake() end, function() os_.wait_signal "TERM" me:wake() end }
  fiber.park()
end

---@param args table
---@param spec table      # of sandbox.create
---@return integer? status
---@return agentbox.Err? err
function M.shell(args, spec)
  local fiber = require "agentbox.sys.fiber"
  local name = args.name or ("s%d"):format(os_.pid())
  if not named.is_name(name) then return nil, { code = "usage", msg = "sandbox shell: --name wants letters, digits, and . _ -" } end
  local sb <close>, err = require "agentbox.sandbox".create(spec)
  if not sb then return nil, err end
  local me, ended = fiber.current(), false
  local server <close>, problem = named.serve(sb, name, function()
    ended = true
    if args.hold then me:wake() else sb:close() end
  end)
  if not server then return nil, problem end
  io.stderr:write(("sandbox %s: agentbox sandbox exec %s -- COMMAND, from elsewhere\n"):format(name, name))
  if args.hold then
    hold(fiber)
    return 0
  end
  local outcome
  outcome, problem = (os_.isatty(0) and os_.isatty(1) and with_terminal or without_terminal)(sb, args.user)
  if ended then
    io.stderr:write("the sandbox was ended by somebody else\n")
    return 0
  end
  if not outcome then return nil, problem end
  return outcome.exit_code
end

-- ---------------------------------------------------------------- from elsewhere

function M.ps(args)
  local list, err = named.list()
  if not list then return nil, err end
  if args.json then
    local json = require "agentbox.json"
    for _, one in ipairs(list) do io.stdout:write(json.encode(one), "\n") end
    return 0
  end
  local summary, time = require "agentbox.cli._summary", require "agentbox.sys.time"
  io.stdout:write(("%-16s  %-7s  %-20s  %7s  %9s  %9s  %5s\n"):format("NAME", "BACKEND", "IMAGE", "PID", "AGE", "MEMORY", "PROCS"))
  for _, one in ipairs(list) do
    io.stdout:write(("%-16s  %-7s  %-20s  %7d  %9s  %9s  %5s\n"):format(one.name, one.backend, out.line(one.image):sub(1, 20), one.pid,
      summary.duration(time.now() - one.started), one.memory_bytes and ("%.1f MB"):format(one.memory_bytes / 1e6) or "-",
      tostring(one.pids or "-")))
  end
  return 0
end

local function stdin_bytes()
  local parts = {}
  for bytes in function() return os_.read_stdin(65536) end do parts[#parts + 1] = bytes end
  return table.concat(parts)
end

function M.exec(args)
  local timeout_s = tonumber(args.timeout or 300)
  if not timeout_s or timeout_s <= 0 then return nil, { code = "usage", msg = "sandbox exec: --timeout wants a number of seconds" } end
  local ending, err = named.exec(args.name, { command = args.command, timeout_s = timeout_s, user = args.user, cwd = args.cwd,
    stdin = args.stdin and stdin_bytes() or nil },
    function(bytes, kind) os_.write(kind, bytes) end)
  if not ending then return nil, err end
  if ending.timed_out then return nil, { code = "timeout", msg = ("the command did not end within %g s"):format(timeout_s) } end
  return ending.exit_code
end

function M.diff(args)
  local list, err = named.ask(args.name, "GET", "/diff")
  if list == nil then return nil, err end
  for kind, path in tostring(list):gmatch "(%S+) ([^\0]*)\0" do io.stdout:write(("%-8s %s\n"):format(kind, out.line(path))) end
  return 0
end

function M.rm(args)
  for _, name in ipairs(args.name) do
    local ok, err = named.finish(name)
    if not ok then return nil, err end
    io.stdout:write("ended ", name, "\n")
  end
  return 0
end

return M

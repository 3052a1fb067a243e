--- Commands of a sandbox handle: options, streamed output, and processes that one talks to.
local err = require "agentbox.err"
local files = require "agentbox.backends._files"
local schema = require "agentbox.schema"

local M = {}

local SIZE_MAX = 65535 -- rows and columns of a terminal

local common = {
  timeout_s = { "number", min = 0 }, stdin = { "string" }, env = { "map" }, cwd = { "string" },
  user = { "string|integer" }, max_output_bytes = { "integer", min = 1 },
}

local shapes = { exec = { on_output = { "function" } }, spawn = {
  pty = { "boolean" }, rows = { "integer", min = 1, max = SIZE_MAX }, cols = { "integer", min = 1, max = SIZE_MAX },
} }
for _, shape in pairs(shapes) do
  for key, kind in pairs(common) do shape[key] = kind end
end

local function environment(given, user)
  local env = {}
  if user.home then env.HOME, env.USER = user.home, user.name end
  for name, value in pairs(given or {}) do
    env[name] = value ~= false and tostring(value)
  end
  return next(env) ~= nil and env or nil
end

---Checks the options of exec or spawn and turns them into the primitive's.
---@param sb agentbox.Sandbox
---@param opts? table
---@param verb "exec"|"spawn"
---@return table? raw_opts
---@return agentbox.Err? err
function M.options(sb, opts, verb)
  opts = schema.options(opts or {}, shapes[verb], "sandbox:" .. verb, 2)
  local user = sb._user or {}
  if opts.user then
    local found, problem = files.user(sb, opts.user)
    if not found then return nil, problem end
    user = found
  end
  return {
    timeout_s = opts.timeout_s, stdin = opts.stdin, env = environment(opts.env, user),
    cwd = opts.cwd and files.path(sb, opts.cwd), uid = user.uid, gid = user.gid, pty = opts.pty, rows = opts.rows,
    cols = opts.cols, max_output_bytes = opts.max_output_bytes,
  }
end

local function keeper(max)
  local parts, kept, dropped = {}, 0, 0
  return function(chunk)
    local take = chunk:sub(1, math.max(0, max - kept))
    kept, dropped = kept + #take, dropped + #chunk - #take
    if take ~= "" then parts[#parts + 1] = take end
  end, function() return table.concat(parts), dropped end
end

---exec with its output shown as it comes.
---@async
---@param sb agentbox.Sandbox
---@param command string|string[]
---@param raw_opts table
---@param on_output fun(chunk: string, stream: "stdout"|"stderr")
---@return agentbox.Outcome? outcome
---@return agentbox.Err? err
function M.streamed(sb, command, raw_opts, on_output)
  local max = raw_opts.max_output_bytes or 1 << 20
  local keep_out, all_out = keeper(max)
  local keep_err, all_err = keeper(max)
  raw_opts.max_output_bytes = 1 << 18 -- how far the command may run ahead of on_output
  local raw <close>, problem = sb._raw:spawn(command, raw_opts)
  if not raw then return nil, problem end
  raw:close_stdin()
  local over
  repeat
    local out, errors
    out, errors, over = raw:next()
    if out then keep_out(out); on_output(out, "stdout") end
    if errors then keep_err(errors); on_output(errors, "stderr") end
  until over and not out and not errors
  local outcome
  outcome, problem = raw:wait()
  if not outcome then return nil, problem end
  local lost = outcome.stderr_dropped
  outcome.stdout, outcome.stdout_dropped = all_out()
  outcome.stderr, outcome.stderr_dropped = all_err()
  outcome.stderr_dropped = outcome.stderr_dropped + lost
  outcome.truncated = outcome.stdout_dropped > 0 or outcome.stderr_dropped > 0
  return outcome
end

---A command that runs beside the caller, from `sandbox:spawn`.
---@class agentbox.Process
local Process = {}
Process.__index = Process
Process.__name = "agentbox.Process"

---@param raw userdata
---@return agentbox.Process
function M.new(raw)
  return setmetatable({ _raw = raw, _held = "" }, Process)
end

-- A program that is slow, silent or gone is an outcome like any other; a model must not be able to make it look like
-- a failure of the infrastructure.
local function own(problem)
  if problem and problem.code ~= "sandbox" then problem.own = true end
  return problem
end

---Gives the process bytes to read, and waits until it has taken them.
---@async
---@param bytes string
---@return true? ok
---@return agentbox.Err? err   # code `io` when it takes no more input
function Process:write(bytes)
  local ok, problem = self._raw:write(bytes)
  return ok, own(problem)
end

---Ends its stdin. A terminal has no such end: write "\4", which is Ctrl-D, at the beginning of a line.
function Process:close_stdin()
  self._raw:close_stdin()
end

local read_shape = {
  until_text = { "string" }, max = { "integer", min = 1 }, timeout_s = { "number", min = 0 },
}

local function take(self, n)
  local text = self._held:sub(1, n)
  self._held = self._held:sub(n + 1)
  return text
end

local function quoted(text) return (("%q"):format(text):gsub("\\\n", "\\n")) end

local function too_late(opts)
  if not opts.until_text then return ("nothing came within %g s"):format(opts.timeout_s) end
  return ("no %s within %g s"):format(quoted(opts.until_text), opts.timeout_s)
end

---Reads stdout: what is there, or up to and including `until_text`. nil at its end. When the time is over: nil, err with
---code `timeout`, and err.partial has what came and stays readable.
---@async
---@param opts? { until_text?: string, max?: integer, timeout_s?: number }
---@return string? bytes
---@return agentbox.Err? err
function Process:read(opts)
  opts = schema.options(opts or {}, read_shape, "process:read")
  if self._outcome then return nil end
  local max, from = opts.max or 1 << 20, 1
  local time = require "agentbox.sys.time"
  local deadline = opts.timeout_s and time.monotonic() + opts.timeout_s
  while true do
    if opts.until_text then
      local _, stop = self._held:find(opts.until_text, from, true)
      if stop then return take(self, stop) end
      from = math.max(1, #self._held - #opts.until_text + 2)
      if #self._held >= max then return nil, err.new("toobig", ("no %s in %d bytes"):format(quoted(opts.until_text), max)) end
    elseif self._held ~= "" then
      return take(self, max)
    end
    local left = deadline and deadline - time.monotonic()
    if left and left <= 0 then left = 0.001 end
    local chunk, problem = self._raw:read(65536, left)
    if chunk then
      self._held = self._held .. chunk
    elseif problem then
      if problem.code == "timeout" then problem.msg = too_late(opts) end
      problem.partial = self._held
      return nil, own(problem)
    else
      return self._held ~= "" and take(self, #self._held) or nil
    end
  end
end

---Reads stderr: what is there; nil at its end.
---@async
---@param timeout_s? number
---@return string? bytes
---@return agentbox.Err? err
function Process:read_stderr(timeout_s)
  local bytes, problem = self._raw:read_stderr(65536, timeout_s)
  return bytes, own(problem)
end

---Writes, then reads: one question to a program that one talks to. A program that has ended is an error, code `io`.
---@async
---@param bytes string
---@param opts? { until_text?: string, max?: integer, timeout_s?: number }
---@return string? bytes
---@return agentbox.Err? err
function Process:ask(bytes, opts)
  local ok, problem = self:write(bytes)
  if not ok then return nil, problem end
  local answer
  answer, problem = self:read(opts)
  if answer or problem then return answer, problem end
  return nil, own(err.new("io", "the program has ended"))
end

---Waits for the end. The outcome has the output that nobody read; asked again, it is the same.
---@async
---@param timeout_s? number
---@return agentbox.Outcome? outcome
---@return agentbox.Err? err     # code `timeout` when it still runs
function Process:wait(timeout_s)
  if self._outcome then return self._outcome end
  local outcome, problem = self._raw:wait(timeout_s)
  if not outcome then return nil, own(problem) end
  outcome.stdout = take(self, #self._held) .. outcome.stdout
  self._outcome = outcome
  return outcome
end

---Kills it with everything that it started. May be called twice, and after close.
function Process:kill()
  if not self._closed then self._raw:kill() end
end

---Whether its main process is alive.
---@return boolean
function Process:running()
  return self._raw:running()
end

---Gives its terminal another size; the program gets SIGWINCH. Nothing happens to one without a terminal.
---@param rows integer
---@param cols integer
function Process:resize(rows, cols)
  for _, n in ipairs { rows, cols } do
    if math.type(n) ~= "integer" or n < 1 or n > SIZE_MAX then error("process:resize: rows and cols from 1 to 65535", 2) end
  end
  self._raw:resize(rows, cols)
end

---Kills it, if it runs, and gives the handle up. May be called twice.
function Process:close()
  self._closed = true
  self._raw:close()
end

Process.__close = Process.close

return M

--- docker/process.lua: one command in a container; the same methods and outcomes as a native one's.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local frames = require "agentbox.docker.frames"
local time = require "agentbox.sys.time"

local M = {}

local OUTPUT_DEFAULT, OUTPUT_MAX = 1 << 20, 1 << 30
local STDIN_WINDOW = 1 << 20
local DEATH_S = 30 -- from kill to its end; the sandbox is broken beyond that
local WITH_STDIN, WITH_TERMINAL, INTERACTIVE = 1, 2, 4

local SIGNALS = {
  "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
  "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL",
  "PWR", "SYS",
}

---@class agentbox.docker.Process
---@field channel agentbox.docker.Channel
local Process = {}
Process.__index = Process

-- ---------------------------------------------------------------- what was asked for

local function check_text(value, what)
  if type(value) ~= "string" and type(value) ~= "number" then
    error(("%s: string expected, got %s"):format(what, type(value)), 0)
  end
  value = tostring(value)
  if value:find("\0", 1, true) then error(what .. " contains a zero byte", 0) end
  return value
end

local function words_of(command)
  if type(command) == "string" then return { "/bin/sh", "-c", "--", check_text(command, "command") } end
  if type(command) ~= "table" or #command == 0 then error("an empty command", 0) end
  local words = {}
  for i, word in ipairs(command) do words[i] = check_text(word, "argument") end
  return words
end

local function environment(base, extra)
  local merged, list = {}, {}
  for name, value in pairs(base) do merged[name] = value end
  for name, value in pairs(extra or {}) do merged[name] = value or nil end
  for name, value in pairs(merged) do
    check_text(name, "name of a variable")
    if name == "" or name:find("=", 1, true) then
      error(("env: '%s' cannot be the name of a variable"):format(name), 0)
    end
    list[#list + 1] = name .. "=" .. check_text(value, name)
  end
  return list
end

local function request(sb, command, opts, flags, room)
  local words, env = words_of(command), environment(sb.env, opts.env)
  local parts = {
    ("<BI4I4I8I4I4I8I4I4"):pack(flags, opts.uid or 0, opts.gid or 0, opts.nofile or 0, opts.rows or 24, opts.cols or 80,
      room, #words, #env), check_text(opts.cwd or sb.workspace, "cwd"), "\0",
  }
  for _, list in ipairs { words, env } do
    for _, text in ipairs(list) do
      parts[#parts + 1] = text
      parts[#parts + 1] = "\0"
    end
  end
  return table.concat(parts)
end

-- ---------------------------------------------------------------- what came

local function take_exit(self, payload)
  local e = { ("<I4i4i4i4I8I8I8I8I8I8I8Bz"):unpack(payload) }
  self.exit = {
    no_exec = e[1] & 2 ~= 0, code = e[2], signal = e[3], user_us = e[5], system_us = e[6], max_rss_bytes = e[7],
    wall_us = e[8], dropped = { e[9], e[10] }, oom = e[11] > 0, lost = e[12] ~= 0, why = e[13],
  }
end

local function on_frame(channel, kind, payload)
  local self = channel.process
  if kind == frames.OUT or kind == frames.ERR then
    local stream = self.streams[kind == frames.OUT and 1 or 2]
    stream[#stream + 1] = payload
    stream.bytes = stream.bytes + #payload
  elseif kind == frames.TAKEN then
    self.taken = self.taken + ("<I8"):unpack(payload)
    self:feed()
  elseif kind == frames.EXIT then
    take_exit(self, payload)
    channel:close()
  elseif kind == frames.REPLY then -- it was refused
    local _, problem = require "agentbox.docker.link".verdict(payload)
    channel.failed = problem
    channel:close()
  end
end

local function take(self, which, max)
  local stream = self.streams[which]
  if stream.bytes == 0 then return nil end
  local all = #stream == 1 and stream[1] or table.concat(stream)
  local piece = #all > max and all:sub(1, max) or all
  self.streams[which] = #piece < #all and { all:sub(#piece + 1), bytes = #all - #piece } or { bytes = 0 }
  if which == 1 and self.interactive and not self.exit then
    self.channel:send(frames.CREDIT, ("<I8"):pack(#piece))
  end
  return piece
end

-- ---------------------------------------------------------------- waiting

-- The command's own deadline, then that of its death.
local function keep_deadline(self)
  local now = time.monotonic()
  if self.killed_at and now - self.killed_at >= DEATH_S then
    self.channel.link:fail(err.new("sandbox", ("a command could not be killed within %d s"):format(DEATH_S)))
  elseif not self.killed_at and self.deadline and now >= self.deadline then
    self.timed_out = true
    self:kill()
  end
end

-- Waits until ready() or the end, whoever keeps the deadlines. false: `timeout_s` is over first.
local function await(self, ready, timeout_s)
  local channel = self.channel
  local until_s = timeout_s and time.monotonic() + timeout_s
  local function over() return self.exit or ready and ready() end
  while not over() and not channel.failed do
    local now = time.monotonic()
    local own = self.killed_at and self.killed_at + DEATH_S or self.deadline
    local left = own and math.max(own - now, 0)
    if until_s and (not left or until_s - now < left) then left = until_s - now end
    if not channel:wait(over, left) then
      if until_s and time.monotonic() >= until_s then return false end
      keep_deadline(self)
    end
  end
  return true
end

-- ---------------------------------------------------------------- stdin

--- Sends what the window allows.
function Process:feed()
  while self.input_at <= #self.input and self.sent - self.taken < STDIN_WINDOW do
    local piece = self.input:sub(self.input_at, self.input_at + frames.PIECE - 1)
    self.input_at = self.input_at + #piece
    self.sent = self.sent + #piece
    self.channel:send(frames.STDIN, piece)
  end
  if self.input_at > #self.input then
    self.input, self.input_at = "", 1
    if not self.hold_stdin and not self.stdin_ended then
      self.stdin_ended = true
      self.channel:send(frames.STDIN_END)
    end
  end
end

---@async
---@param bytes string
---@return true? ok
---@return agentbox.Err? err
function Process:write(bytes)
  if self.channel.failed then return nil, self.channel.failed end
  if self.exit or self.stdin_ended or not self.hold_stdin then
    return nil, err.new("io", "the process takes no more input")
  end
  self.input = self.input:sub(self.input_at) .. bytes
  self.input_at = 1
  self:feed()
  await(self, function() return self.input == "" and self.taken == self.sent end)
  return true
end

function Process:close_stdin()
  self.hold_stdin = false
  if not self.exit and not self.channel.failed then self:feed() end
end

-- ---------------------------------------------------------------- the end

function Process:kill()
  if self.exit or self.killed_at or self.channel.failed then return end
  self.killed_at = time.monotonic()
  self.channel:send(frames.KILL)
end

local function outcome_of(self)
  local e = self.exit
  if not e then return nil, self.channel.failed end
  if e.lost then return nil, err.new("sandbox", "the sandbox died while the command ran") end
  local stdout, stderr = take(self, 1, math.maxinteger) or "", take(self, 2, math.maxinteger) or ""
  if e.no_exec and stderr == "" then stderr = ("agentbox: cannot start the command: %s\n"):format(e.why) end
  local signal = e.signal ~= 0 and e.signal or nil
  return {
    stdout = stdout, stderr = stderr, stdout_dropped = e.dropped[1], stderr_dropped = e.dropped[2],
    truncated = e.dropped[1] > 0 or e.dropped[2] > 0, timed_out = self.timed_out or false, oom = e.oom,
    exit_code = self.timed_out and -1 or signal and 128 + signal or e.code,
    signal = signal and "SIG" .. (SIGNALS[signal] or signal) or nil,
    usage = { cpu_s = (e.user_us + e.system_us) / 1e6, wall_s = e.wall_us / 1e6, max_rss_bytes = e.max_rss_bytes },
    duration_s = e.wall_us / 1e6,
  }
end

---@async
---@param timeout_s? number
---@return agentbox.Outcome? outcome
---@return agentbox.Err? err
function Process:wait(timeout_s)
  if self.interactive and not self.exit then
    self.interactive = false
    self.channel:send(frames.FLOOD)
  end
  if not await(self, nil, timeout_s) then return nil, err.new("timeout", "nothing came in time") end
  return outcome_of(self)
end

---@return boolean
function Process:running()
  return not self.exit and not self.channel.failed
end

---@param rows integer
---@param cols integer
function Process:resize(rows, cols)
  self.channel:send(frames.RESIZE, ("<I4I4"):pack(rows, cols))
end

--- Kills it, if it runs. Its frames are not waited for: the link forgets them.
function Process:close()
  self:kill()
end

-- ---------------------------------------------------------------- reading

local function read(self, which, max, timeout_s)
  if not await(self, function() return self.streams[which].bytes > 0 end, timeout_s) then
    return nil, err.new("timeout", "nothing came in time")
  end
  local piece = take(self, which, max or 65536)
  if piece then return piece end
  if self.channel.failed then return nil, self.channel.failed end
  return nil
end

---@async
function Process:read(max, timeout_s) return read(self, 1, max, timeout_s) end

---@async
function Process:read_stderr(max, timeout_s) return read(self, 2, max, timeout_s) end

---@async
---@return string? stdout
---@return string? stderr
---@return boolean over
function Process:next()
  await(self, function() return self.streams[1].bytes > 0 or self.streams[2].bytes > 0 end)
  return take(self, 1, math.maxinteger), take(self, 2, math.maxinteger), not self:running()
end

Process.__close = Process.close

-- ---------------------------------------------------------------- the beginning

---@param sb agentbox.docker.Container
---@param command string|string[]
---@param opts table           # the primitive's options
---@param spawn boolean
---@return agentbox.docker.Process
function M.start(sb, command, opts, spawn)
  opts = opts or {}
  local room = opts.max_output_bytes or OUTPUT_DEFAULT
  if room < 1 or room > OUTPUT_MAX then
    error(("option 'max_output_bytes': must be between 1 and %d"):format(OUTPUT_MAX), 0)
  end
  local channel = sb.link:open()
  local timeout_s = opts.timeout_s or 0
  local self = setmetatable({
    channel = channel, streams = { { bytes = 0 }, { bytes = 0 } }, input = opts.stdin or "", input_at = 1, sent = 0,
    taken = 0, hold_stdin = spawn, interactive = spawn,
    stdin_ended = not spawn and opts.stdin == nil,
    deadline = timeout_s > 0 and time.monotonic() + timeout_s or nil,
  }, Process)
  channel.process, channel.on_frame = self, on_frame
  local flags = (opts.pty and WITH_TERMINAL or 0) | (spawn and INTERACTIVE or 0)
      | ((spawn or opts.stdin) and WITH_STDIN or 0)
  local exec = request(sb, command, opts, flags, room)
  if #exec > frames.MAX_BYTES then
    channel:close()
    channel.failed = err.new("toobig", "arguments and environment are longer than the kernel takes; use stdin or a file")
    return self
  end
  channel:send(frames.EXEC, exec)
  if opts.stdin then self:feed() end
  if spawn and self.deadline then fiber.spawn(await, self) end -- nobody else may be waiting
  return self
end

local Killer = { __close = function(self) self.process:close() end }

---@async
---@param sb agentbox.docker.Container
---@param command string|string[]
---@param opts table
---@return agentbox.Outcome? outcome
---@return agentbox.Err? err
function M.run(sb, command, opts)
  local process = M.start(sb, command, opts, false)
  local _ <close> = setmetatable({ process = process }, Killer)
  await(process)
  return outcome_of(process)
end

return M

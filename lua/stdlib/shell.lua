--- A shell that stays: directory, variables and functions of one command are there for the next, and a command costs
--- what the shell costs, not the start of a program.
---
---     local sh <close> = assert(sb:shell())
---     sh:run "cd src; export MODE=test"
---     print(sh:run("pwd; echo $MODE", { timeout_s = 10 }).output)
---
--- bash where the sandbox has it, else its /bin/sh. Both streams are one, in the order in which they were written.
--- A command is given to `eval` as one word, so that what is incomplete (a quote, a heredoc, an `if`) is an error of
--- syntax and never waits for more; its stdin is /dev/null. The end of its output is marked by a random word that only
--- its script has: what a command prints does not look like it, unless it reads that script to lie about itself.
---
--- A shell reads its stdin byte by byte, since what it starts might want the rest. So a native one has its script in a
--- file that grows (src/rt/script.h), and waits at the end of each command for a byte from a pipe. An ordinary user's has
--- not: root inside is that user, whose files it may write to.
local err = require "agentbox.err"
local processes = require "agentbox.backends._process"
local rand = require "agentbox.sys.rand"
local schema = require "agentbox.schema"
local time = require "agentbox.sys.time"

local M = {}

local OPEN_S = 30
local MAX_OUTPUT, READ_MAX = 1 << 20, 1 << 18
local KILL_S = 10
local SETTLE_S = 5 -- for a shell to come back whose command was killed

-- Kills what the shell $1 started since its command began, and nothing older: the jobs that earlier commands left. By
-- descent, or by session for what lost its parent. With nothing but a shell, whatever the image. How many hundredths of a
-- second that is it asks when it has looked at the clock: a busy machine may take long to start it, and what began the
-- moment after its command would look older than that. An answer that took long says too many: it asks again.
local KILL = [[
spent=0; least=; hit=1; round=0
while [ "${least:-9}" -gt 2 ] && [ $spent -lt 300 ]; do
  read -r from _ </proc/uptime; echo; read -r age || exit; read -r to _ </proc/uptime
  from=${from%.*}${from#*.}; took=$((${to%.*}${to#*.} - from)); spent=$((spent + took))
  if [ $took -lt "${least:-$((took + 1))}" ]; then least=$took; up=$from; set -- "$1" "$age"; fi
done
echo enough
while [ $hit = 1 ] && [ $round -lt 50 ]; do
  hit=0; round=$((round + 1)); mine=" $1 "; more=1
  while [ $more = 1 ]; do
    more=0
    for d in /proc/[0-9]*; do
      pid=${d#/proc/}
      case $mine in *" $pid "*) continue ;; esac
      read -r line 2>/dev/null <"$d/stat" || continue
      set -- "$1" "$2" ${line##*) }
      case $3 in Z) continue ;; esac
      case $mine in *" $4 "*) ;; *) [ "$6" = "$1" ] || continue ;; esac
      [ $((up - ${22})) -le "$2" ] || continue
      mine="$mine$pid "; more=1
      kill -9 "$pid" 2>/dev/null && hit=1
    done
  done
done]]

---@class agentbox.ShellOutcome
---@field exit_code integer         # -1 when timed_out
---@field output string             # both streams, the head of them
---@field dropped integer           # bytes beyond the cap
---@field timed_out boolean
---@field ended boolean             # the shell is gone, with its state: the next command gets a new one
---@field duration_s number

---@class agentbox.Shell
local Shell = {}
Shell.__index = Shell
Shell.__name = "agentbox.Shell"


-- How it is started, what it does first, and what goes around each command. Descriptors of ours are where marks go, and
-- /dev/null or what to wait for: bash has room where nobody looks, others know ten. A wait that a trap broke goes on. By
-- way of `command`, which functions of the same name do not replace.
local PIPE = {
  start = "if command -v bash >/dev/null 2>&1; then exec bash --noprofile --norc; fi; exec /bin/sh",
  begin = [[exec 7</dev/null 8>&1 2>&1
__ab() { \command printf '\000%s %d\000' "$1" "$2" >&8; }
]],
  from = "<&7", wait = "",
}

-- Before anything is written, the end of the file would be that of the shell. And bash takes as much of it at a time as there
-- was when it began, up to 8 KiB.
local SCRIPT = {
  start = "read -r ready <&2; if command -v bash >/dev/null 2>&1; then exec bash --noprofile --norc /dev/stdin; fi; exec /bin/sh /dev/stdin",
  begin = ("#"):rep(8191) .. [[

if [ -n "$BASH_VERSION" ]; then
  exec </dev/null 61>&1 62<&2 2>&1
  __ab() { \command printf '\000%s %d\000' "$1" "$2" >&61; }
  __aw() { until \command read -ru62 __ab || [ $? -lt 129 ]; do :; done; }
else
  exec </dev/null 7>&1 8<&2 2>&1
  __ab() { \command printf '\000%s %d\000' "$1" "$2" >&7; }
  __aw() { until \command read -r __ab <&8 || [ $? -lt 129 ]; do :; done; }
fi
]],
  from = "", wait = "__aw\n",
}

-- What tells the end of a command, up to the number that follows it.
local function mark() return ("\0%016x "):format(("<I8"):unpack(rand.bytes(8))) end

-- Where the mark is, and the number behind it once that is there as well.
local function ending(text, word)
  local at, behind = text:find(word, 1, true)
  local stop = at and text:find("\0", behind + 1, true)
  return at, stop and math.tointeger(tonumber(text:sub(behind + 1, stop - 1)))
end

local function sink(max) return { max = max, kept = 0, all = 0 } end

-- The head of an output is kept, all of it is counted.
local function keep(output, bytes)
  local take = math.min(#bytes, output.max - output.kept)
  output.all = output.all + #bytes
  if take > 0 then
    output[#output + 1] = take < #bytes and bytes:sub(1, take) or bytes
    output.kept = output.kept + take
  end
end

-- Takes bytes until the mark and the number behind it. Gives the number, or nil when the shell ended, or nil, err.
local function collect(self, word, output, deadline)
  local tail, raw = "", self._process._raw
  while true do
    local bytes, problem = raw:read(READ_MAX, math.max(0.001, deadline - time.monotonic()), word)
    if not bytes then
      keep(output, tail)
      return nil, problem
    end
    local text = tail .. bytes
    local at, number = ending(text, word)
    if number then
      keep(output, text:sub(1, at - 1))
      return number
    end
    local rest = at and #text - at + 1 or math.min(#text, #word - 1)
    keep(output, text:sub(1, #text - rest))
    tail = rest > 0 and text:sub(-rest) or ""
    if time.monotonic() >= deadline then -- one that never falls silent
      keep(output, tail)
      return nil, err.new("timeout", "the command goes on")
    end
  end
end

local function spawn(self)
  local opts, problem = processes.options(self._sandbox, self._spawn, "spawn")
  if not opts then return nil, problem end
  opts.script = self._form == SCRIPT or nil
  local raw
  raw, problem = self._sandbox._raw:spawn({ "/bin/sh", "-c", self._form.start }, opts)
  if not raw then return nil, problem end
  return processes.new(raw)
end

local function start(self)
  local process, problem = spawn(self)
  if not process then return nil, problem end
  local word = mark()
  self._process = process
  local ok
  ok, problem = process:write(self._form.begin .. "__ab " .. word:sub(2) .. "$$\n" .. self._form.wait)
  if ok then
    self._pid, problem = collect(self, word, sink(0), time.monotonic() + OPEN_S)
    if self._pid then return true end
  end
  self:close()
  return nil, err.is(problem) and problem or err.new("unsupported", "the sandbox has no /bin/sh that runs")
end

---Starts one. `cwd`, `user` and `env` are those of `exec`.
---@async
---@nodiscard
---@param sandbox agentbox.Sandbox
---@param opts? { cwd?: string, user?: string|integer, env?: table<string, string|false> }
---@return agentbox.Shell? shell
---@return agentbox.Err? err
function M.open(sandbox, opts)
  opts = schema.options(opts or {}, { cwd = { "string" }, user = { "string|integer" }, env = { "map" } }, "sandbox:shell")
  local self = setmetatable({ _sandbox = sandbox, _spawn = {
    cwd = opts.cwd, user = opts.user, env = opts.env, max_output_bytes = READ_MAX,
  }, _form = sandbox.kind == "native" and sandbox._raw:user_count() > 1 and SCRIPT or PIPE }, Shell)
  local ok, problem = start(self)
  if not ok then return nil, problem end
  return self
end

local Hold = { __close = function(hold) hold.shell._busy = nil end }

local run_shape = { timeout_s = { "number", min = 0.001 }, max_output_bytes = { "integer", min = 1 } }

-- A failure is one of the sandbox.
local function kill_since(self, began)
  local killer <close>, problem = self._sandbox:spawn({ "/bin/sh", "-c", KILL, "sh", tostring(self._pid) }, { timeout_s = KILL_S })
  if not killer then return nil, problem end
  local asks, ok
  repeat
    asks, problem = killer:read { until_text = "\n" }
    if asks == "\n" then ok, problem = killer:write(("%d\n"):format(math.ceil((time.monotonic() - began) * 100) + 1)) end
  until asks ~= "\n" or not ok
  if asks and ok then problem = select(2, killer:wait()) end
  return not problem or problem.own or nil, problem
end

-- Ends what the command started; the shell itself lives if it was only waiting for that.
local function stop_command(self, word, output, began)
  local ok, problem = kill_since(self, began)
  if not ok then return false, problem end
  return collect(self, word, output, time.monotonic() + SETTLE_S) ~= nil
end

-- Why there was no mark: an outcome all the same, unless the sandbox failed.
local function without_mark(self, outcome, problem, word, output, began)
  if problem and problem.code ~= "timeout" then return nil, problem end
  if problem then
    local lives, failure = stop_command(self, word, output, began)
    if failure then return nil, failure end
    outcome.exit_code, outcome.timed_out, outcome.ended = -1, true, not lives
  else
    local over, failure = self._process:wait(OPEN_S)
    if not over then return nil, failure end
    outcome.exit_code, outcome.ended = over.exit_code, true
  end
  if outcome.ended then self:close() end
  return outcome
end

---Runs one command in it. One whose time is over is killed with what it started; if the shell does not come back, it
---is ended too. An ended shell (`exit`, `exec`, a kill) is replaced at the next command. Raises when another command
---runs in it: they share one state.
---@async
---@param command string
---@param opts? { timeout_s?: number, max_output_bytes?: integer }   # 300 s, 1 MiB
---@return agentbox.ShellOutcome? outcome
---@return agentbox.Err? err
function Shell:run(command, opts)
  opts = opts and schema.options(opts, run_shape, "shell:run") or {}
  if command:find("\0", 1, true) then return nil, err.new("badarg", "the command holds a zero byte") end
  if self._busy then error("shell:run: another command is running in this shell", 2) end
  self._busy = true
  local _ <close> = setmetatable({ shell = self }, Hold)
  local ok, problem = self._process ~= nil, nil
  if not ok then ok, problem = start(self) end
  if not ok then return nil, problem end
  local output, word, began, form = sink(opts.max_output_bytes or MAX_OUTPUT), mark(), time.monotonic(), self._form
  -- A space first: eval knows options.
  local text = "\\command eval ' " .. command:gsub("'", "'\\''") .. "' " .. form.from .. "\n__ab " .. word:sub(2) .. '"$?"\n' .. form.wait
  ok, problem = self._process:write(text)
  local outcome = { timed_out = false, ended = false }
  local code
  if ok or problem.code == "io" then
    code, problem = collect(self, word, output, began + (opts.timeout_s or 300))
  end
  outcome.exit_code = code
  if not code then outcome, problem = without_mark(self, outcome, problem, word, output, began) end
  if not outcome then
    self:close()
    return nil, problem
  end
  outcome.output, outcome.dropped = table.concat(output), output.all - output.kept
  outcome.duration_s = time.monotonic() - began
  return outcome
end

---Ends it with its background jobs. May be called twice; `run` starts a new one.
function Shell:close()
  if self._process then self._process:close() end
  self._process = nil
end

Shell.__close = Shell.close

return M

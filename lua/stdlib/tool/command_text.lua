--- tool/command_text.lua: runs a command for the model and says what came of it.
local err = require "agentbox.err"
local text = require "agentbox.text"

local M = {}

--- Code points shown of each stream; the head is kept.
M.MAX_STREAM = 50000
local MAX_BYTES = 4 * M.MAX_STREAM

local function stream(lines, name, bytes, dropped)
  if bytes == "" then return 0 end
  local shown = text.scrub(bytes)
  if #shown <= M.MAX_STREAM and dropped == 0 then
    lines[#lines + 1] = ("--- %s ---"):format(name)
    lines[#lines + 1] = shown
    return 0
  end
  local length = utf8.len(shown)
  local cut = math.max(0, length - M.MAX_STREAM) + dropped
  if cut > 0 then
    local stop = utf8.offset(shown, math.min(length, M.MAX_STREAM) + 1) or #shown + 1
    shown = ("%s\n...[truncated %d chars]"):format(shown:sub(1, stop - 1), cut)
  end
  lines[#lines + 1] = ("--- %s ---"):format(name)
  lines[#lines + 1] = shown
  return cut
end

local function dropped_of(out, name)
  local counts = type(out.truncated) == "table" and out.truncated or out
  return tonumber(counts[name .. "_dropped"]) or tonumber(counts[name]) or 0
end

--- The observation: exit code, what went wrong beyond it, both streams.
---@param out agentbox.Outcome
---@param limit_s number
---@return string
---@return table facts
function M.format(out, limit_s)
  local lines = { "exit_code=" .. (out.timed_out and -1 or out.exit_code or -1) }
  local stderr = out.stderr
  if out.timed_out then
    lines[#lines + 1] = "timed_out=true"
    local note = ("Command timed out after %g s; it and everything it started was killed."):format(limit_s)
    stderr = stderr == "" and note or stderr:gsub("\n?$", "\n") .. note
  elseif out.oom then
    lines[#lines + 1] = "out_of_memory=true"
  elseif out.signal then
    lines[#lines + 1] = "signal=" .. out.signal
  end
  local cut = stream(lines, "stdout", out.stdout, dropped_of(out, "stdout"))
  cut = cut + stream(lines, "stderr", stderr, dropped_of(out, "stderr"))
  return table.concat(lines, "\n"), {
    is_error = out.timed_out or out.exit_code ~= 0, exit = out.timed_out and -1 or out.exit_code, cut = cut,
    timed_out = out.timed_out or nil, oom = out.oom or nil,
  }
end

--- Exit codes that a shell gives when the sandbox's own programs are gone.
local SUSPICIOUS = { [126] = true, [127] = true }

--- A command that could not even start is either a typo or the end of the sandbox; only a probe can tell.
local function shell_gone(ctx, out)
  if out.timed_out or not SUSPICIOUS[out.exit_code] then return false end
  local probe, problem = ctx.sandbox:exec("exit 0", { timeout_s = 10 })
  if not probe then return err.infra(problem) and problem or true end
  return probe.exit_code ~= 0
end

-- How long the command may take, or nil and what is wrong with the call.
local function limit_of(ctx, command, timeout_s)
  if command:find("\0", 1, true) then return nil, "the command holds a NUL byte" end
  if timeout_s ~= timeout_s or timeout_s <= 0 then return nil, "timeout_s must be more than 0" end
  return math.max(0.001, math.min(timeout_s, ctx:time_left())) -- 0 would be no limit
end

local ENDED = "The shell has ended, and with it directory, variables, functions and jobs; the next call starts a new one."

---The same in a shell that stays.
---@async
---@param ctx agentbox.Ctx
---@param shell agentbox.Shell
---@param command string
---@param timeout_s number
---@return string?
---@return any
function M.run_in(ctx, shell, command, timeout_s)
  local limit_s, wrong = limit_of(ctx, command, timeout_s)
  if not limit_s then return nil, wrong end
  local out, problem = shell:run(command, { timeout_s = limit_s, max_output_bytes = MAX_BYTES })
  if not out then return nil, err.infra(problem) and problem or problem.msg end
  local said, facts = M.format({
    exit_code = out.exit_code, timed_out = out.timed_out, stdout = out.output, stdout_dropped = out.dropped, stderr = "",
  }, limit_s)
  local gone = shell_gone(ctx, out)
  if err.is(gone) then return nil, gone end
  if gone then facts.broken = "the sandbox can no longer start a shell" end
  return out.ended and said .. "\n" .. ENDED or said, facts
end

---@async
---@param ctx agentbox.Ctx
---@param command string
---@param timeout_s number
---@return string?
---@return any
function M.run(ctx, command, timeout_s)
  local limit_s, wrong = limit_of(ctx, command, timeout_s)
  if not limit_s then return nil, wrong end
  local out, problem = ctx.sandbox:exec(command, {
    timeout_s = limit_s, cwd = ctx.workdir or ctx.workspace, user = ctx.user, max_output_bytes = MAX_BYTES,
  })
  if not out then return nil, err.infra(problem) and problem or problem.msg end
  local said, facts = M.format(out, limit_s)
  local gone = shell_gone(ctx, out)
  if err.is(gone) then return nil, gone end
  if gone then facts.broken = "the sandbox can no longer start a shell" end
  return said, facts
end

return M

--- verifiers/command.lua: a shell command whose exit code is the verdict.
---
--- The exit code is that of the process, as the kernel gives it; nothing in the output can be taken for it. A command
--- that runs out of time is a failure of the work under test, not of the engine. One that could not be started is that, too,
--- when the sandbox starts others, or is the agent's own: who broke that one is known.
local err = require "agentbox.err"
local seed = require "agentbox.seed"
local text = require "agentbox.text"

local M = {}

--- Bytes kept of each stream.
M.MAX_OUTPUT = 1 << 20

-- A shell's words for what it could not run, or find.
local NOT_RUN = { [126] = true, [127] = true }

--- Brings an outcome to what every verifier reports.
---@param out agentbox.Outcome
---@param command string
---@return table facts
function M.facts(out, command)
  return {
    exit_code = out.timed_out and -1 or out.exit_code or -1, stdout = text.scrub(out.stdout),
    stderr = text.scrub(out.stderr), duration_s = out.duration_s, command = command,
    timed_out = out.timed_out or nil, oom = out.oom or nil,
  }
end

---@async
---@param ev agentbox.Evidence
---@return number?
---@return string|agentbox.Err?
---@return table? facts
function M.run(ev)
  local spec = ev.spec
  local command = spec.command
  if not command or not command:find("%S") then
    return nil, err.new("task", ('verifier.command: is missing (verifier.type is "%s")'):format(spec.type))
  end
  local out, problem = ev.sandbox:exec(command, {
    timeout_s = spec.timeout_s, cwd = ev.workdir, user = ev.user, max_output_bytes = M.MAX_OUTPUT,
  })
  if not out then return nil, problem end
  if NOT_RUN[out.exit_code] and spec.sandbox ~= "agent" then
    local sound
    sound, problem = seed.check(ev.sandbox)
    if not sound then return nil, problem end
  end
  local facts = M.facts(out, command)
  facts.success = not out.timed_out and out.exit_code == spec.success_exit_code
  local said = out.timed_out and ("no result within %g s"):format(spec.timeout_s) or "exit code " .. facts.exit_code
  return facts.success and spec.reward_success or spec.reward_failure, said, facts
end

return M

--- Checks of a seeded sandbox before the agent begins: whether the environment is what the tasks need. One that fails
--- says nothing about the policy, so the rollout stays unscored.
local err = require "agentbox.err"
local text = require "agentbox.text"

local M = {}

---@class agentbox.SetupCheck
---@field name string
---@field command string
---@field success_exit_code? integer   # default 0
---@field timeout_s? number            # default 60
---@field required? boolean            # default true; others are only told

M.FIELDS = {
  name = { "string", required = true }, command = { "string", required = true }, success_exit_code = { "integer", default = 0 },
  timeout_s = { "number", min = 0, default = 60 }, required = { "boolean", default = true },
}

local MAX_SAID = 2000

local function failure(check, out)
  local how = out.timed_out and ("timed out after %g s"):format(check.timeout_s) or "exit code " .. tostring(out.exit_code)
  local words = out.stderr:find "%S" and out.stderr or out.stdout:find "%S" and out.stdout or "(no output)"
  return ("setup check %s failed (%s): %s"):format(check.name, how, text.cut(text.scrub(words), MAX_SAID))
end

--- Runs the checks in their order up to the first required one that fails.
---@async
---@param sb agentbox.Sandbox
---@param checks agentbox.SetupCheck[]
---@param workdir string
---@param tell fun(line: string)         # for those that are not required
---@return true?
---@return agentbox.Err? err             # code `task` with `check`, or the sandbox's own
function M.run(sb, checks, workdir, tell)
  for _, check in ipairs(checks) do
    local out, problem = sb:exec(check.command, { timeout_s = check.timeout_s, cwd = workdir })
    if not out then return nil, err.wrap(problem, "setup check " .. check.name) end
    if out.timed_out or out.exit_code ~= check.success_exit_code then
      local said = failure(check, out)
      if check.required then return nil, err.new("task", said, { check = check.name }) end
      tell(said)
    end
  end
  return true
end

return M

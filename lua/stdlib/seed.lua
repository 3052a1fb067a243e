--- seed.lua: brings a fresh sandbox to the state a task begins with: files, setup commands, a sign of life.
local err = require "agentbox.err"
local schema = require "agentbox.schema"
local text = require "agentbox.text"

local M = {}

--- For one setup command; the agent's own limits do not apply here.
M.SETUP_TIMEOUT_S = 300

--- Writes files below the workspace, each to exactly its bytes and mode.
---@async
---@param sb agentbox.Sandbox
---@param workspace string
---@param files table<string, agentbox.TaskFile>
---@param owner? integer|string
---@return true?
---@return agentbox.Err?
function M.write_files(sb, workspace, files, owner)
  for _, path in ipairs(schema.names(files)) do
    local file = files[path]
    local ok, problem = sb:write(workspace .. "/" .. path, file.bytes, { mode = file.mode, owner = owner })
    if not ok then return nil, err.wrap(problem, "writing " .. path) end
  end
  return true
end

local function said(out)
  local words = out.stderr:find("%S") and out.stderr or out.stdout:find("%S") and out.stdout or "(no output)"
  return text.cut(text.scrub(words), 2000)
end

local function failure(command, out, timeout_s)
  local how = out.timed_out and ("timed out after %g s"):format(timeout_s) or "exit code " .. tostring(out.exit_code)
  if out.oom then how = how .. ", out of memory" end
  return err.new("task", ("setup command failed (%s): %s: %s"):format(how, command, said(out)))
end

local function run_setup(sb, task, workdir)
  for _, command in ipairs(task.setup_commands) do
    local out, problem = sb:exec(command, { timeout_s = M.SETUP_TIMEOUT_S, cwd = workdir })
    if not out then return nil, err.wrap(problem, "setup command " .. command) end
    if out.timed_out or out.exit_code ~= 0 then return nil, failure(command, out, M.SETUP_TIMEOUT_S) end
  end
  return true
end

--- Whether a sandbox runs commands at all: otherwise what they say is no verdict over anybody's work.
---@async
---@param sb agentbox.Sandbox
---@return true?
---@return agentbox.Err?   # code `sandbox`
function M.check(sb)
  local out, problem = sb:exec("true", { timeout_s = 60 }) -- a busy machine is no broken sandbox
  if not out then return nil, problem end
  if out.timed_out or out.exit_code ~= 0 then
    return nil, err.new("sandbox", "the sandbox cannot run `true`: " .. said(out))
  end
  return true
end

--- The workspace is the agent's: a user of its own could otherwise not even make a file in it.
local function give_away(sb, workspace, owner)
  local out, problem = sb:exec({ "/bin/chown", "-R", "--", tostring(owner), workspace }, { user = 0, timeout_s = 60 })
  if not out then return nil, problem end
  if out.exit_code ~= 0 then return nil, err.new("task", "sandbox.user: " .. said(out)) end
  return true
end

--- Seeds a sandbox. A failure of a setup command has code `task`: it is not the policy's doing, and the rollout is
--- unscored.
---@async
---@param sb agentbox.Sandbox
---@param task agentbox.Task
---@param opts { workspace: string, workdir: string, owner?: integer|string, sound?: boolean }   # sound: another one like it was
---@return true?
---@return agentbox.Err?
function M.run(sb, task, opts)
  local ok, problem = M.write_files(sb, opts.workspace, task.files, opts.owner)
  if not ok then return nil, problem end
  if opts.owner ~= nil then
    ok, problem = give_away(sb, opts.workspace, opts.owner)
    if not ok then return nil, problem end
  end
  if #task.setup_commands > 0 then return run_setup(sb, task, opts.workdir) end
  if opts.sound then return true end
  return M.check(sb)
end

return M

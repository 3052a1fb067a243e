--- rollout/artifacts.lua: files that a task wants kept from the agent's workspace.
local glob = require "agentbox.glob"

local M = {}

local MAX_FILES, MAX_FILE_BYTES = 1000, 16 << 20

--- Reads what matches, as bytes. A file that can't be read is named in the log and left out; it never spoils a
--- rollout.
---@async
---@param remains agentbox.Remains
---@param workspace string
---@param globs string[]
---@param rec agentbox.Recorder
---@return { path: string, bytes: string }[]?
function M.collect(remains, workspace, globs, rec)
  if #globs == 0 then return nil end
  local sb, list, problem
  sb, problem = remains:sandbox()
  if sb then list, problem = sb:list(workspace, { recursive = true }) end
  if not list then
    rec:event("warn", "artifacts: " .. problem.msg)
    return nil
  end
  local matches, out = glob.compile(globs), {}
  for _, entry in ipairs(list) do
    if entry.type == "file" and matches(entry.name) and #out < MAX_FILES then
      local bytes
      bytes, problem = sb:read(workspace .. "/" .. entry.name, { max_bytes = MAX_FILE_BYTES })
      if bytes then
        out[#out + 1] = { path = entry.name, bytes = bytes }
      else
        rec:event("warn", ("artifact %s: %s"):format(entry.name, problem.msg))
      end
    end
  end
  return out
end

return M

--- tool/path_text.lua: what the file tools say when a path does not do.
local err = require "agentbox.err"

local M = {}

--- A path as the model wrote it, in quotes.
---@param path string
---@return string
function M.quote(path)
  if path:find("'", 1, true) and not path:find('"', 1, true) then return '"' .. path .. '"' end
  return "'" .. path:gsub("\\", "\\\\"):gsub("'", "\\'") .. "'"
end

--- The reason for the model, or the error itself when the sandbox failed and not the path.
---@param problem agentbox.Err
---@param path string
---@param what "file"|"folder"
---@return string|agentbox.Err
function M.problem(problem, path, what)
  if err.infra(problem) then return problem end
  if problem.code == "notfound" then return ("%s not found: %s"):format(what, path) end
  if problem.code == "denied" then return ("permission denied: %s"):format(path) end
  return problem.msg
end

---@param kind string
---@param path string
---@return string
function M.not_a_file(kind, path)
  if kind == "dir" then return ("%s is a folder, not a file"):format(M.quote(path)) end
  return ("%s is a %s, not a file"):format(M.quote(path), kind)
end

return M

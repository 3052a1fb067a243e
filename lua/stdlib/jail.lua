--- jail.lua: which path inside a sandbox a tool's or a task's path means.
---
--- This is text only, as the model sees paths: relative ones start in the workspace, `..` pops, and the result must
--- lie in the workspace. Links are not looked at here: the engine's file access is confined to the sandbox whatever
--- a link says, so a way around this text reaches the agent's own sandbox and nothing else.
local M = {}

---@param path string   # what the model wrote
---@param root string   # absolute path of the workspace
---@return string? absolute  # normalised, without a trailing slash
---@return string? reason
function M.resolve(path, root)
  if type(path) ~= "string" then return nil, "path must be a string" end
  if root:sub(1, 1) ~= "/" then return nil, "the workspace must be an absolute path: " .. root end
  if path:find("\0", 1, true) then return nil, "path holds a NUL byte" end
  local text = path
  if path:sub(1, 1) ~= "/" then
    text = root .. "/" .. path
  elseif path:sub(1, 2) == "//" and path:sub(3, 3) ~= "/" then
    return nil, "path escapes the workspace: " .. path
  end
  local parts = {}
  for part in text:gmatch("[^/]+") do
    if part == ".." then
      if #parts == 0 then return nil, "path escapes the workspace: " .. path end
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  local absolute = "/" .. table.concat(parts, "/")
  local base = root:gsub("/+$", "")
  if absolute == base or base == "" or absolute:sub(1, #base + 1) == base .. "/" then return absolute end
  return nil, "path escapes the workspace: " .. path
end

--- The same, as a path relative to the workspace ("" is the workspace itself).
---@param path string
---@param root string
---@return string? relative
---@return string? reason
function M.relative(path, root)
  local absolute, reason = M.resolve(path, root)
  if not absolute then return nil, reason end
  local base = root:gsub("/+$", "")
  return (absolute:sub(#base + 2))
end

--- The place of a starter or hidden file: a name, never the workspace itself, never outside.
---@param path string
---@return string? relative
---@return string? reason
function M.starter(path)
  if path == "" then return nil, "file name is empty" end
  local rel, reason = M.relative(path, "/workspace")
  if not rel then return nil, reason end
  if rel == "" then return nil, "file name means the workspace itself: " .. path end
  if path:sub(-1) == "/" then return nil, "file name ends in a slash: " .. path end
  for part in rel:gmatch("[^/]+") do
    if #part > 255 then return nil, "file name is longer than 255 bytes" end
  end
  return rel
end

return M

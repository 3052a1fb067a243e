--- The host's files. Reading, writing, listing and removing wait on a pool thread, so other fibers go on.
---
--- Writing is atomic and durable: a reader or a crash sees the old bytes or the new ones. Only regular files are
--- read: a FIFO or a device might never end.
local sys = require "agentbox.sys.fs"

local M = {}
for name, fn in pairs(sys) do M[name] = fn end

---The file's text with the line ends as they are; a short form for read with a cap of 16 MiB.
---@async
---@param path string
---@return string? text
---@return agentbox.Err? err
function M.read_text(path)
  return sys.read(path, 16 << 20)
end

---Calls fn(path, entry) for everything below dir, folders before what they hold, in byte order; symbolic links are
---not followed. fn returns false to leave a folder out.
---@async
---@param dir string
---@param fn fun(path: string, entry: agentbox.DirEntry): boolean?
---@return true? ok
---@return agentbox.Err? err
function M.walk(dir, fn)
  local entries, e = sys.list(dir)
  if not entries then return nil, e end
  for _, entry in ipairs(entries) do
    local path = dir .. "/" .. entry.name
    if fn(path, entry) ~= false and entry.type == "dir" then
      local ok
      ok, e = M.walk(path, fn)
      if not ok then return nil, e end
    end
  end
  return true
end

return M

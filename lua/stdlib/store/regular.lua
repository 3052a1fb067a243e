--- Opens a file of a run for reading. Opening a FIFO would stop the whole engine until somebody writes into it.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"

---@async
---@param path string
---@return file*?
---@return agentbox.Err? err   # `notfound`, `invalid` for what is no file, `io`
return function(path)
  local stat, problem = fs.stat(path)
  if not stat then return nil, problem end
  if stat.type ~= "file" then return nil, err.new("invalid", ("%s is a %s, not a file"):format(path, stat.type)) end
  local file, msg = io.open(path, "rb")
  if not file then return nil, err.new("io", msg) end
  return file
end

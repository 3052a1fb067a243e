--- The whole lines of a file, each with its place, in memory that does not grow with the file.
---
--- A line ends at a line feed and nowhere else; a last one without it is being written, or was left by a crash, and is
--- not given by `next`.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local sys = require "agentbox.sys.lines"

local M = {}

---@class agentbox.Lines
---@field next fun(self: agentbox.Lines): string?, integer|agentbox.Err|nil  # a line without its line feed, and its offset
---@field rest fun(self: agentbox.Lines): string     # what stands behind the last line feed, once `next` has come to the end
---@field close fun(self: agentbox.Lines)            # may be called twice

--- Opens a file at an offset, which must be where a line begins. Opening a FIFO would stop the whole engine until somebody
--- writes into it.
---@nodiscard
---@param path string
---@param from? integer
---@return agentbox.Lines?
---@return agentbox.Err? err    # `notfound`, `invalid` for what is no file, `io`
function M.open(path, from)
  local stat, problem = fs.stat(path)
  if not stat then return nil, problem end
  if stat.type ~= "file" then return nil, err.new("invalid", ("%s is a %s, not a file"):format(path, stat.type)) end
  return sys.open(path, from)
end

return M

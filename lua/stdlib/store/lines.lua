--- The whole lines of a file, each with its place, in memory that does not grow with the file.
---
--- A line ends at a line feed and nowhere else; a last one without it is being written, or was left by a crash, and is
--- not given.
local regular = require "agentbox.store.regular"

local M = {}

local CHUNK = 1 << 20

---@class agentbox.Lines
local Lines = {}
Lines.__index = Lines

--- Opens a file at an offset, which must be where a line begins.
---@nodiscard
---@param path string
---@param from? integer
---@return agentbox.Lines?
---@return agentbox.Err? err
function M.open(path, from)
  local file, problem = regular(path)
  if not file then return nil, problem end
  if from and from > 0 then file:seek("set", from) end
  return setmetatable({ _file = file, _buffer = "", _at = 1, _offset = from or 0 }, Lines)
end

-- Reads until a line feed is there. Pieces of a long line are joined once, at its end.
local function fill(self)
  local parts = { self._buffer:sub(self._at) }
  while true do
    local chunk = self._file:read(CHUNK)
    if not chunk then return nil end
    local stop = chunk:find("\n", 1, true)
    parts[#parts + 1] = chunk
    if stop then
      local before = 0
      for i = 1, #parts - 1 do before = before + #parts[i] end
      self._buffer, self._at = table.concat(parts), 1
      return before + stop
    end
  end
end

--- The next line without its line feed, and its offset; nil at the end.
---@return string? text
---@return integer? offset
function Lines:next()
  if not self._file then return nil end
  local stop = self._buffer:find("\n", self._at, true) or fill(self)
  if not stop then
    self:close()
    return nil
  end
  local text, offset = self._buffer:sub(self._at, stop - 1), self._offset
  self._offset, self._at = offset + stop - self._at + 1, stop + 1
  return text, offset
end

--- May be called twice.
function Lines:close()
  if self._file then self._file:close() end
  self._file = nil
end

Lines.__close = Lines.close

return M

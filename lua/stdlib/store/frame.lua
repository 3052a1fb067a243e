--- The frame of a stored line: `{...,"sum":"sha256:<64 hex digits>"}` and a line feed.
---
--- The sum covers the bytes of the line before `,"sum":`; it can be checked with a pair of standard tools and
--- without parsing JSON. A record ends at a line feed and nowhere else (U+2028 and friends may stand inside).
local hash = require "agentbox.sys.hash"

local M = {}

local MARK = ',"sum":"sha256:'
local TAIL = #MARK + 64 + 2

--- Adds the sum to the JSON text of an object.
---@param text string
---@return string line    # ends with a line feed
function M.close(text)
  return hash.seal(text, MARK, '"}\n')
end

-- The bytes that the sum covers, and the sum; nil when the line carries none.
local function parts(line)
  if line:sub(-1) == "\n" then line = line:sub(1, -2) end
  local tail = line:sub(-TAIL)
  if tail:sub(1, #MARK) ~= MARK or line:sub(-2) ~= '"}' then return nil end
  return line:sub(1, -TAIL - 1), tail:sub(#MARK + 1, -3)
end

--- The object that a line holds, without its sum.
---@param line string    # with or without its line feed
---@return string? text  # nil: the line carries no sum
---@return boolean? ok   # whether the sum is right
function M.read(line)
  local covered, sum = parts(line)
  if not covered then return nil end
  return covered .. "}", hash.sha256(covered) == sum
end

--- Checks a line, with or without its line feed, and copies nothing of it.
---@param line string
---@return boolean? ok         # nil: the line carries no sum
function M.check(line)
  local last = line:byte(-1) == 10 and #line - 1 or #line
  local covered = last - TAIL
  if covered < 0 or line:sub(covered + 1, covered + #MARK) ~= MARK or line:sub(last - 1, last) ~= '"}' then return nil end
  return hash.sha256(line, covered) == line:sub(covered + #MARK + 1, last - 2)
end

return M

--- Bytes made into text, once, at the edge; and text cut to size.
local sys = require "agentbox.sys.utf8x"

local M = {}

--- Whether the bytes are UTF-8.
---@param bytes string
---@return boolean
function M.valid(bytes)
  return sys.valid(bytes)
end

--- Replaces what is not UTF-8 by U+FFFD, one mark for each maximal ill-formed part, as browsers do.
---@param bytes string
---@return string text
---@return boolean changed
function M.scrub(bytes)
  return sys.scrub(bytes)
end

--- Counts code points; an ill-formed part counts as the one mark that would replace it.
---@param text string
---@return integer
function M.count(text)
  return sys.len(text)
end

--- Keeps the first `max` code points. When something was cut, says so at the end:
--- `\n...[truncated N chars]`, N being the code points that are gone.
---@param text string
---@param max integer           # code points kept, the note not counted
---@param separator? string     # before the note instead of one newline
---@return string text
---@return integer removed      # 0 when nothing was cut
function M.cut(text, max, separator)
  if #text <= max then return text, 0 end
  local kept = sys.truncate_cp(text, max)
  if #kept == #text then return text, 0 end
  local removed = sys.len(text) - max
  return ("%s%s...[truncated %d chars]"):format(kept, separator or "\n", removed), removed
end

--- Keeps at most `max` bytes, without ending inside a character.
---@param text string
---@param max integer
---@return string text
---@return boolean cut
function M.cut_bytes(text, max)
  local kept = sys.truncate_bytes(text, max)
  return kept, #kept < #text
end

return M

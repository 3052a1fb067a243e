--- What goes to the terminal: text that somebody else wrote, made harmless.
local M = {}

---The text with control characters written out (`\x1b`), so that nothing an agent printed can steer a terminal.
---Line feeds and tabs stay; invalid UTF-8 becomes U+FFFD.
---@param text string
---@return string
function M.clean(text)
  text = require "agentbox.text".scrub(text)
  text = text:gsub("[\0-\8\11-\31\127]", function(c) return ("\\x%02x"):format(c:byte()) end)
  return (text:gsub("\xc2[\x80-\x9f]", function(c) return ("\\x%02x"):format(c:byte(2)) end))
end

---The same on one line.
---@param text string
---@return string
function M.line(text)
  return (M.clean(text):gsub("%s+$", ""):gsub("\n", "\\n"):gsub("\t", "\\t"))
end

local codes = { red = "31", green = "32", dim = "2" }

---The text in a colour, when descriptor `fd` is a terminal that wants colours (NO_COLOR is not set).
---@param fd integer
---@param colour "red"|"green"|"dim"
---@param text string
---@return string
function M.paint(fd, colour, text)
  local os_ = require "agentbox.sys.os"
  local plain = os_.env "NO_COLOR"
  if (plain and plain ~= "") or os_.env "TERM" == "dumb" or not os_.isatty(fd) then return text end
  return ("\27[%sm%s\27[0m"):format(codes[colour], text)
end

---The last `max` characters of a text.
---@param text string
---@param max integer
---@return string
function M.tail(text, max)
  text = M.clean(text)
  local n = utf8.len(text)
  return n <= max and text or text:sub(utf8.offset(text, n - max + 1))
end

---A number as the reference prints it: whole numbers keep one decimal, as in 1.0.
---@param n number?
---@return string
function M.number(n)
  if n == nil then return "-" end
  local text = ("%.10g"):format(n)
  return text:find "[.einf]" and text or text .. ".0"
end

return M

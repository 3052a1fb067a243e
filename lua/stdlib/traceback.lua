--- Tracebacks for a script's author: the script's own lines, without the library's and Lua's.
local M = {}

-- Built-in chunks are named @agentbox/tools/bash.lua, as if they were files.
local function is_ours(source)
  if source:sub(1, 1) ~= "@" or source:find "/luaunit%.lua$" then return true end
  local name = source:sub(2):gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")
  return require "agentbox.loader".builtin_source(name) ~= nil
end

local function label(frame)
  if frame.what == "main" then return "main chunk" end
  if frame.name and frame.name ~= "?" then return ("function '%s'"):format(frame.name) end
  return ("function at line %d"):format(frame.linedefined)
end

-- Of a recursion without end: each level is found by walking the stack again.
local MAX_LEVELS = 30

---The lines of the call stack that belong to files outside the library, innermost first.
---@param level integer   # as for error(); 1 is the caller
---@return string[]
function M.lines(level)
  local out, i = {}, level + 1
  while true do
    local frame = debug.getinfo(i, "Sln")
    if not frame then return out end
    if i > MAX_LEVELS then
      out[#out + 1] = "..."
      return out
    end
    if not is_ours(frame.source) and frame.currentline > 0 then
      out[#out + 1] = ("%s:%d: in %s"):format(frame.short_src, frame.currentline, label(frame))
    end
    i = i + 1
  end
end

---A message with the script's lines below it; for xpcall.
---@param err any
---@return string
function M.text(err)
  local lines = M.lines(2)
  local text = tostring(err)
  if #lines == 0 then return text end
  return text .. "\nstack traceback:\n   " .. table.concat(lines, "\n   ")
end

return M

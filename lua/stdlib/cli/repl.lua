--- `agentbox repl`: Lua, line by line, in the main fiber, so that everything that waits works.
local M = {
  name = "repl",
  summary = "type Lua interactively",
  description = "Reads Lua from standard input: an expression prints its values, an unfinished statement is "
      .. "continued on the next line, an error is printed and does not end the session. `ab` is the library. "
      .. "End with Ctrl-D or os.exit().",
}

-- Whole lines out of whatever the terminal or pipe gives.
local function line_reader()
  local os_ = require "agentbox.sys.os"
  local buffer, ended = "", false
  return function()
    while true do
      local stop = buffer:find("\n", 1, true)
      if stop then
        local line = buffer:sub(1, stop - 1)
        buffer = buffer:sub(stop + 1)
        return line
      end
      if ended then
        local rest = buffer
        buffer = ""
        return rest ~= "" and rest or nil
      end
      local chunk = os_.read_stdin(65536)
      if not chunk or chunk == "" then ended = true else buffer = buffer .. chunk end
    end
  end
end

local function compile(text)
  local chunk = load("return " .. text, "@stdin", "t")
  if chunk then return chunk end
  local msg
  chunk, msg = load(text, "@stdin", "t")
  if chunk then return chunk end
  return nil, msg, msg:find "<eof>$" ~= nil
end

local function on_raise(err)
  if type(err) == "table" and err.cancel then return err end
  return require "agentbox.cli._trace".text(err)
end

local function show(ok, ...)
  if ok then
    if select("#", ...) > 0 then print(...) end
    return
  end
  local err = ...
  if type(err) == "table" and err.exit_status then error(err, 0) end
  io.stderr:write(tostring(err), "\n")
end

-- One statement, however many lines it takes; nil at the end of the input.
local function statement(read, prompt)
  prompt "> "
  local text = read()
  if not text then return nil end
  local chunk, msg, unfinished = compile(text)
  while unfinished do
    prompt ">> "
    local more = read()
    if not more then break end
    text = text .. "\n" .. more
    chunk, msg, unfinished = compile(text)
  end
  return chunk or function() error(msg, 0) end
end

function M.run()
  local os_ = require "agentbox.sys.os"
  local interactive = os_.isatty(0)
  local function prompt(text)
    if not interactive then return end
    io.stdout:write(text)
    io.stdout:flush()
  end
  _G.ab = require "agentbox"
  if interactive then prompt "agentbox repl: `ab` is the library, Ctrl-D ends\n" end
  local read = line_reader()
  for chunk in function() return statement(read, prompt) end do
    show(xpcall(chunk, on_raise))
  end
  if interactive then prompt "\n" end
  return 0
end

return M

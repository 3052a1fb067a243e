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
  return require "agentbox.traceback".text(err)
end

local function show(ok, ...)
  if not ok then
    io.stdout:flush()
    io.stderr:write(tostring((...)), "\n")
  elseif select("#", ...) > 0 then
    print(...)
  end
end

-- Ctrl-C ends the statement that runs, not the session. Each statement has a fiber of its own for it.
local function interrupts()
  local fiber, os_ = require "agentbox.sys.fiber", require "agentbox.sys.os"
  local session = {}
  local watcher = fiber.spawn(function()
    while os_.wait_signal "INT" do
      if session.statement then session.statement:cancel() end
    end
  end)
  function session.run(chunk)
    session.statement = fiber.spawn(function() show(xpcall(chunk, on_raise)) end)
    local ok, err = session.statement:join()
    session.statement = nil
    if not ok then show(false, err) end
  end
  return setmetatable(session, { __close = function()
    watcher:cancel()
    if session.statement then session.statement:cancel() end
  end })
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
  local session <close> = interrupts()
  for chunk in function() return statement(read, prompt) end do session.run(chunk) end
  if interactive then prompt "\n" end
  return 0
end

return M

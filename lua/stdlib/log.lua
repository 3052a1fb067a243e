--- Messages about the run. Inside a rollout they go to that rollout's log, as `print` does; else to standard error.
---
--- A fiber's log is the function `log` in its locals: `function(level, text)`. Children inherit it.
local fiber = require "agentbox.sys.fiber"
local secret = require "agentbox.secret"
local sys = require "agentbox.sys.log"

local M = {}

---@param level "debug"|"info"|"warn"|"error"
---@param format string      # as for string.format when there are arguments
---@param ... any
function M.write(level, format, ...)
  local text = secret.redact(select("#", ...) > 0 and format:format(...) or format)
  local current = fiber.current()
  local sink = current and current:locals().log
  if sink then sink(level, text) else sys.write(level, text) end
end

---write at level "debug".
---@param ... any   # a format and its arguments
function M.debug(...) M.write("debug", ...) end
---write at level "info".
---@param ... any   # a format and its arguments
function M.info(...) M.write("info", ...) end
---write at level "warn".
---@param ... any   # a format and its arguments
function M.warn(...) M.write("warn", ...) end
---write at level "error".
---@param ... any   # a format and its arguments
function M.error(...) M.write("error", ...) end

---Lines below this level are dropped; "warn" at first.
---@param level "debug"|"info"|"warn"|"error"|"off"
function M.set_level(level)
  sys.set_level(level)
end

return M

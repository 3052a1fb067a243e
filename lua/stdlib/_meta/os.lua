---@meta agentbox.sys.os

---@class agentbox.sys.os
---@field version string
local M = {}

---@param name string
---@return string?
function M.env(name) end

---@param fd integer
---@return boolean
function M.isatty(fd) end

---@return integer
function M.pid() end

--- The effective user.
---@return integer
function M.uid() end

---@return string
function M.hostname() end

--- Columns and rows of the terminal; nothing when there is none.
---@return integer? columns
---@return integer? rows
function M.winsize() end

--- To standard output (1) or error (2), past every buffer. A reader that went away is an error value.
---@param fd 1|2
---@param bytes string
---@return true? ok
---@return agentbox.Err? err
function M.write(fd, bytes) end

--- What is there on standard input, at most max bytes; waits for the first one; nil at the end.
---@async
---@param max integer
---@return string? bytes
---@return agentbox.Err? err
function M.read_stdin(max) end

--- Waits for the next signal of that name. Meanwhile the default (INT and TERM cancel the main fiber) does not apply.
---@async
---@param name "INT"|"TERM"|"HUP"|"USR1"|"USR2"|"WINCH"
---@return true? ok
---@return agentbox.Err? err
function M.wait_signal(name) end

--- What the process ends with after os.exit.
---@param status? integer
---@return integer
function M.exit_status(status) end

--- Unwinds every fiber, running <close> handlers, then ends the process. This is os.exit.
---@param status? integer|boolean
function M.exit(status) end

--- Bytes of memory that the process has in RAM.
---@return integer
function M.memory_rss() end

return M

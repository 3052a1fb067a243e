--- Lua patterns with a budget of steps.
---
--- `find`, `match`, `gmatch` and `gsub` are those of `string` with the same meaning, which inside the engine
--- are budgeted too: a pattern that would run for minutes raises an error value, code
--- `limit`, and while it runs other fibers have their turns. One call may take 20 million steps and 32 more for each byte of its subject; a `gmatch` may
--- take them over all its matches. `re.limited(steps)` gives the four functions with another budget.
local sys = require "agentbox.sys.re"

local M = {}

---@class agentbox.Patterns
---@field find fun(s: string, pattern: string, init?: integer, plain?: boolean): integer?, integer?, ...
---@field match fun(s: string, pattern: string, init?: integer): any
---@field gmatch fun(s: string, pattern: string, init?: integer): fun(): any
---@field gsub fun(s: string, pattern: string, repl: string|table|function, max?: integer): string, integer

--- As `string.find`.
---@param s string
---@param pattern string
---@param init? integer
---@param plain? boolean
---@return integer? first
---@return integer? last
---@return any ... captures
function M.find(s, pattern, init, plain)
  return sys.find(s, pattern, init, plain)
end

--- As `string.match`.
---@param s string
---@param pattern string
---@param init? integer
---@return any ... captures, or the whole match
function M.match(s, pattern, init)
  return sys.match(s, pattern, init)
end

--- As `string.gmatch`.
---@param s string
---@param pattern string
---@param init? integer
---@return fun(): any ... iterator
function M.gmatch(s, pattern, init)
  return sys.gmatch(s, pattern, init)
end

--- As `string.gsub`.
---@param s string
---@param pattern string
---@param repl string|number|table|function
---@param max? integer
---@return string text
---@return integer count
function M.gsub(s, pattern, repl, max)
  return sys.gsub(s, pattern, repl, max)
end

--- The four functions with a budget of their own.
---@param steps integer         # for one call, beside 32 for each byte of the subject
---@return agentbox.Patterns
function M.limited(steps)
  return sys.limited(steps)
end

return M

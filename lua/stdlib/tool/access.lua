--- tool/access.lua: whether the agent's user may do to a file what a tool does for it.
---
--- The engine reaches files from outside and could read anything in the sandbox. When the agent has a user of its
--- own, the sandbox's kernel is asked first, as that user; for the sandbox's root there is nothing to ask.
local err = require "agentbox.err"

local M = {}

local ABSENT = 127

local function may(ctx, flag, path)
  local how = { user = ctx.user, timeout_s = 10 }
  local out, problem = ctx.sandbox:exec({ "/usr/bin/test", flag, path }, how)
  if out and out.exit_code == ABSENT then -- small images have it elsewhere; every shell has it
    out, problem = ctx.sandbox:exec({ "/bin/sh", "-c", 'test "$1" "$2"', "sh", flag, path }, how)
  end
  if not out then return nil, problem end
  return out.exit_code == 0
end

local function denied(path) return err.new("denied", "permission denied: " .. path) end

--- For a file that a tool makes, the nearest folder that exists decides.
local function may_create(ctx, path)
  local parent = path:match("^(.+)/[^/]+$") or "/"
  if parent == "/" or ctx.sandbox:stat(parent) then return may(ctx, "-w", parent) end
  return may_create(ctx, parent)
end

---@async
---@param ctx agentbox.Ctx
---@param path string           # absolute
---@param what "read"|"write"
---@return true?
---@return agentbox.Err? err    # code `denied`, or the sandbox's own failure
function M.check(ctx, path, what)
  if ctx.user == nil then return true end
  local ok, problem
  if what == "read" or ctx.sandbox:stat(path) then
    ok, problem = may(ctx, what == "read" and "-r" or "-w", path)
    -- What the user can't see at all and what is not there look the same from inside.
    if ok == false and not ctx.sandbox:stat(path) then return nil, err.new("notfound", "not found: " .. path) end
  else
    ok, problem = may_create(ctx, path)
  end
  if problem then return nil, problem end
  if not ok then return nil, denied(path) end
  return true
end

return M

--- sandbox/left.lua: what a sandbox left, as a sandbox that is made only when it is needed.
---
--- Files that nothing runs in can be read where they are: the tree of a native sandbox outlives its processes. Whoever
--- runs a command there, or changes something, gets a sandbox that begins with that state.
local async = require "agentbox.async"
local err = require "agentbox.err"
local files = require "agentbox.backends._files"

local M = {}

-- What every handle says of itself, and what only reads.
local FACTS = { "id", "kind", "workspace", "image", "image_id" }
local READS = { "read", "stat", "list", "get", "copy_tree" }

local Left = { __name = "agentbox.Sandbox" }

local function become(self, sb)
  for key in pairs(self) do self[key] = nil end
  for key, value in pairs(sb) do self[key] = value end
  return setmetatable(self, getmetatable(sb))
end

-- The kernel's overlay of a tree is gone before the next one stands on its files.
local function close_eyes(self)
  self._looks = false
  self._frozen:close()
end

-- Alone, or after those who still read.
local function made(self)
  if getmetatable(self) ~= Left then return self end
  local turn <close> = self._lock:acquire() -- luacheck: ignore
  if getmetatable(self) ~= Left then return self end -- another one made it meanwhile
  close_eyes(self)
  local sb, problem = self._make()
  if not sb then error(problem, 0) end
  if getmetatable(self) == Left then return become(self, sb) end
  sb:close() -- it was closed meanwhile
  return self
end

local reads = {}
for _, name in ipairs(READS) do
  reads[name] = function(self, path, to, ...)
    local may_look = rawget(self, "_looks") and not rawequal(to, self)
    local turn <close> = may_look and self._lock:acquire() or nil -- luacheck: ignore
    if turn and rawget(self, "_looks") then return self._frozen[name](self._frozen, path, to, ...) end
    if turn then turn:release() end
    local sb = made(self)
    return sb[name](sb, path, to, ...)
  end
end

local function close(self)
  if getmetatable(self) ~= Left then return self:close() end
  local frozen = self._frozen
  become(self, frozen)
  return frozen:close()
end

--- Raises the error of a sandbox that cannot be made.
function Left:__index(key)
  if key == "close" then return close end
  return rawget(self, "_looks") and reads[key] or made(self)[key]
end

Left.__close = close

--- Ends a sandbox: every process in it is dead when this returns.
---@async
---@param sb agentbox.Sandbox                        # whose backend can freeze; it is closed in any case
---@param make fun(layer: agentbox.Layer): agentbox.Sandbox?, agentbox.Err?   # gives one that begins with what it left
---@return agentbox.Layer? layer
---@return agentbox.Sandbox|agentbox.Err left_or_err
function M.of(sb, make)
  -- Of a weak engine some files can be read only by who is root inside.
  local layer, looks = sb._raw:freeze(sb.kind == "native" and not files.is_weak(sb))
  if not layer then
    sb:close()
    return nil, err.wrap(looks, "freezing the agent's sandbox")
  end
  local self = { _looks = looks, _frozen = sb, _lock = async.semaphore(1), _make = function() return make(layer) end }
  for _, name in ipairs(FACTS) do self[name] = sb[name] end
  if looks ~= true then close_eyes(self) end
  return layer, setmetatable(self, Left)
end

--- Before another sandbox is made of the same layer.
---@async
---@param left agentbox.Sandbox
function M.look_away(left)
  if getmetatable(left) ~= Left then return end
  local turn <close> = left._lock:acquire() -- luacheck: ignore
  if getmetatable(left) == Left then close_eyes(left) end
end

return M

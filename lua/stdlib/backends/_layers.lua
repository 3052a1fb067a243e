--- The changes of a sandbox that lives on: taken as a layer, forked, looked at. Methods of sandboxes whose backend can
--- freeze.
local async = require "agentbox.async"
local err = require "agentbox.err"

local M = {}

--- Far beyond what a busy machine needs; copying what a living process is writing to takes longest.
local PATIENCE_S = 120
local MAX_FORKS, DIFF_MAX = 10000, 100000

---@class agentbox.native.Sandbox: agentbox.Sandbox
local Layered = {}

---Ends it and gives its files as a layer, which `create { layers = { layer } }` of the same image starts from, in
---constant time, any number of times. Close the layer when it is not needed any more.
---@async
---@nodiscard
---@return agentbox.Layer? layer
---@return agentbox.Err? err
function Layered:freeze()
  local layer, problem = self._raw:freeze()
  if layer then return layer end
  return nil, problem
end

---Its files so far as a layer, like `freeze`; it lives on. While no process is alive inside, this takes as long for ten
---thousand changed files as for ten. Otherwise, and before Linux 6.15, what was changed is copied, as it is while others
---write. Processes and
---/dev/shm are not part of it. What a snapshot holds counts against the limits of disk and inodes; without a change since
---the last one it costs nothing.
---@async
---@nodiscard
---@return agentbox.Layer? layer
---@return agentbox.Err? err     # `busy`: another one is being taken, or a tree is being copied into it
function Layered:snapshot()
  local layer, problem = async.timeout(PATIENCE_S, self._raw.snapshot, self._raw)
  if layer or problem.code ~= "timeout" then return layer, problem end
  return nil, err.new("sandbox", "no snapshot within " .. PATIENCE_S .. " s: the machine is too busy, or the zygote is stopped")
end

local Forks = { __close = function(self)
  for _, sb in ipairs(self) do sb:close() end
end }

---Sandboxes of their own that begin with its files as they are now, with the same image, limits and environment. It
---lives on; running processes are not forked. Closing the list closes them.
---@async
---@nodiscard
---@param n? integer   # 1 unless given
---@return agentbox.native.Sandbox[]? forks
---@return agentbox.Err? err
function Layered:fork(n)
  n = n or 1
  if math.type(n) ~= "integer" or n < 1 or n > MAX_FORKS then
    error("sandbox:fork: a count from 1 to " .. MAX_FORKS .. " expected", 2)
  end
  local layer <close>, problem = self:snapshot()
  if not layer then return nil, problem end
  local spec, list, indices = {}, setmetatable({}, Forks), {}
  for key, value in pairs(self._spec) do spec[key] = value end
  spec.layers = { layer }
  for i = 1, n do indices[i] = i end
  local failed
  async.each(indices, function()
    local sb, wrong = require "agentbox.sandbox".create(spec)
    if sb then list[#list + 1] = sb else failed = failed or wrong end
  end)
  if not failed then return list end
  Forks.__close(list)
  return nil, failed
end

---@class agentbox.Difference
---@field path string                          # absolute, bytes
---@field kind "added"|"changed"|"removed"
---@field type string                          # of what is there now; of a removed one, what it was
---@field size integer
---@field mode integer
---@field uid integer
---@field gid integer

---What differs in its files from what it started from, from an earlier layer of its own, or from the bare `"image"`: a
---file that was written and has the same bytes, owner and mode as before does not. Of a removed folder only the folder
---is named. Takes time for what was written, not for the size of the image.
---@async
---@nodiscard
---@param base? agentbox.Layer|"image"
---@return agentbox.Difference[]? differences   # in order of their paths' bytes, folders before what is in them
---@return agentbox.Err? err                    # `toobig` beyond 100,000
function Layered:diff(base)
  return self._raw:diff(base, DIFF_MAX)
end

---Ends it and makes its files an image of that name, on the one that it stood on; docs/images.md.
---@async
---@nodiscard
---@param name string
---@param opts? { message?: string }   # for the image's history
---@return agentbox.Image? image
---@return agentbox.Err? err            # `unsupported` when it stands on no image
function Layered:commit(name, opts)
  return require "agentbox.image.commit".commit(self, name, opts or {})
end

---Adds the methods to a class.
---@param class table
function M.install(class)
  for name, fn in pairs(Layered) do class[name] = fn end
end

return M

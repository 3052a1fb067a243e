--- image/commit.lua: what a sandbox changed, as an image on the one that it stood on.
local err = require "agentbox.err"
local layers = require "agentbox.image.layers"
local name = require "agentbox.image.name"
local store = require "agentbox.image.store"

local M = {}

---@async
---@param sb agentbox.native.Sandbox
---@param text string
---@param opts { message?: string }
---@return agentbox.Image?
---@return agentbox.Err?
function M.commit(sb, text, opts)
  local called, problem = name.parse(text)
  if not called then return nil, problem end
  local base = sb._image
  if not base.root then
    return nil, err.new("unsupported", ("a sandbox of '%s' cannot become an image: it stands on none"):format(sb.image),
      { hint = "make it with image = NAME (agentbox image list)" })
  end
  local self
  self, problem = store.open()
  if not self then return nil, problem end
  local lock <close>, busy = self:use()
  if not lock then return nil, busy end
  local ids = { sb._raw:ids() }
  local frozen <close>, bad = sb:freeze()
  if not frozen then return nil, bad end
  local made
  made, problem = layers.pack(self, frozen, ids, { skip = sb._spec.network and sb._spec.network ~= "none" and "etc/resolv.conf" or nil })
  if not made then return nil, problem end
  local all = table.move(base.layers, 1, #base.layers, 1, {})
  table.move(made, 1, #made, #all + 1, all)
  local steps = {}
  for i in ipairs(made) do steps[i] = { text = opts.message or "agentbox commit" } end
  return layers.finish(self, name.text(called), {
    layers = all, config = base.config, steps = steps, source = "commit",
  })
end

return M

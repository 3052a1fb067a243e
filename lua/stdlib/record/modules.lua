--- The Lua that took part in a rollout: the shipped library as one entry, everything else module by module.
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local loader = require "agentbox.loader"

local M = {}

local library

-- One hash of every shipped source, so that two records tell whether the same library made them.
local function library_hash()
  if not library then
    local sum = hash.hasher()
    for _, name in ipairs(loader.builtins()) do
      local source = loader.builtin_source(name)
      sum:update(("%s\0%d\0"):format(name, #source)):update(source)
    end
    library = "sha256:" .. sum:hex()
  end
  return library
end

local function entry_of(name, from, hex)
  local entry = json.object {}
  entry.name = name
  entry.from = from
  entry.hash = hex and "sha256:" .. hex or nil
  return entry
end

--- Name, origin and hash: the library, the modules of scripts and overlays that are loaded, and what `extra` names.
---@param extra? { name: string, from: string, sha256?: string }[]
---@return table[]
function M.list(extra)
  local whole = entry_of("agentbox", "builtin")
  whole.hash = library_hash()
  local out, seen = json.array { whole }, {}
  local function add(module)
    if not seen[module.name .. "\0" .. module.from] then
      seen[module.name .. "\0" .. module.from] = true
      out[#out + 1] = entry_of(module.name, module.from, module.sha256)
    end
  end
  for _, module in ipairs(loader.modules(true)) do add(module) end
  for _, module in ipairs(extra or {}) do add(module) end
  return out
end

return M

--- The facade: `local ab = require "agentbox"`. Submodules are loaded on first use, so a script that only makes
--- sandboxes does not pay for the rest.
---
--- The standard libraries are there too. `io.*`, `os.execute` and `io.popen` stop every fiber while they run, so
--- rollouts use `ab.fs` and sandboxes; `os.exit` unwinds; `debug.sethook` is refused.

-- In stock Lua the engine is a C module beside this file; in the program it is there already.
local core = not package.preload["agentbox.loader"] and require "agentbox.core"
local loader = require "agentbox.loader"

---@class agentbox
---@field agent agentbox.agent
---@field async agentbox.async
---@field cli agentbox.cli
---@field config agentbox.config
---@field conform agentbox.conform
---@field dataset agentbox.dataset
---@field err agentbox.err
---@field export agentbox.export
---@field fs agentbox.fs
---@field generate agentbox.generate
---@field harbor agentbox.harbor
---@field hash agentbox.hash
---@field http agentbox.http
---@field http_server agentbox.http_server
---@field image agentbox.image
---@field json agentbox.json
---@field log agentbox.log
---@field mcp agentbox.mcp
---@field model agentbox.model
---@field outcome agentbox.outcome
---@field path agentbox.path
---@field probe agentbox.probe
---@field prompt agentbox.prompt
---@field rand agentbox.rand
---@field re agentbox.re
---@field render agentbox.render
---@field rescore agentbox.rescore
---@field rollout agentbox.rollout
---@field runner agentbox.runner
---@field sandbox agentbox.sandbox
---@field schema agentbox.schema
---@field secret agentbox.secret
---@field serve agentbox.serve
---@field shell agentbox.shell
---@field stats agentbox.stats
---@field store agentbox.store
---@field suite agentbox.suite
---@field task agentbox.task
---@field test agentbox.test
---@field text agentbox.text
---@field time agentbox.time
---@field toml agentbox.toml
---@field tool agentbox.tool
---@field traj agentbox.traj
---@field verify agentbox.verify
---@field view agentbox.view
---@field yaml agentbox.yaml
local M = { version = require "agentbox.sys.os".version }

-- The closed list: a misspelt name is an error where it stands, not a nil that fails later.
local modules = {}
for name in ([[
  agent async cli config conform dataset err export fs generate harbor hash http http_server image json log mcp model outcome path probe prompt rand
  re render rescore rollout runner sandbox schema secret serve shell stats store suite task test text time toml tool traj verify view yaml
]]):gmatch "%S+" do
  modules[name] = "agentbox." .. name
end

---The shipped module of that name, never an overlay's: an override may call what it overrides.
---@param name string   # "agentbox.tools.read_file"
---@return any
M.builtin = loader.builtin

---Runs fn as the main fiber and waits for every fiber: the way into the library from stock Lua. In the program,
---where a script is a fiber already, it just calls fn.
---@param fn fun(...): ...
---@param ... any
---@return any ...
function M.run(fn, ...)
  if core then return core.run(fn, ...) end
  return fn(...)
end

return setmetatable(M, {
  __index = function(self, name)
    local module = modules[name]
    if not module then
      local names = {}
      for known in pairs(modules) do names[#names + 1] = known end
      error(("agentbox has no part '%s'%s"):format(tostring(name), require("agentbox.suggest").hint(tostring(name), names)), 2)
    end
    local value = require(module)
    rawset(self, name, value)
    return value
  end,
})

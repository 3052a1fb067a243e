--- The scripted model server for Lua tests: one process for all of them, a script of its own for each test.
---
---     local fakellm = dofile "tests/support/fakellm.lua"
---     local fake = fakellm.script { steps = { "hello", { status = 429 } } }
---     ab.model.open { model = "m", base_url = fake.url }
---     fake.log()                                   -- the requests so far
local http = require "agentbox.http"
local json = require "agentbox.json"

local M = {}

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local server

-- More than one process only for options that a script cannot set (TLS, a Unix socket).
local function launch(arguments)
  local pipe = assert(io.popen(("exec python3 %s/fakellm.py --watch-parent %s"):format(here, arguments or ""), "r"))
  local where = assert(pipe:read "l", "fakellm did not start")
  return { pipe = pipe, where = where }
end

--- The address of the one server, started when first asked for.
function M.address()
  server = server or launch()
  return "http://127.0.0.1:" .. server.where
end

--- A server of its own; `stop` ends it.
---@param arguments string
---@return { where: string, stop: fun(request_opts: table) }
function M.start(arguments)
  local own = launch(arguments)
  function own.stop(opts)
    opts.method, opts.proxy = "POST", false
    http.request(opts)
    own.pipe:close()
  end
  return own
end

local count = 0

--- Installs a script under a name of its own.
---@param script table
---@return { url: string, log: fun(): table[] }
function M.script(script)
  count = count + 1
  local name = ("t%d_%d"):format(count, math.random(1 << 40))
  local address = M.address()
  local steps = json.array(script.steps or script)
  script = script.steps and script or { steps = steps }
  script.steps = steps
  assert(http.request { method = "PUT", url = address .. "/_script/" .. name, body = json.encode(script), proxy = false })
  return {
    url = address .. "/s/" .. name .. "/v1",
    log = function() return json.decode(assert(http.request { url = address .. "/_log/" .. name, proxy = false }).body) end,
  }
end

---@return table
function M.stats()
  return json.decode(assert(http.request { url = M.address() .. "/_stats", proxy = false }).body)
end

return M

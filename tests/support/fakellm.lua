--- The scripted model server for Lua tests: one process for all of them, a script of its own for each test.
---
---     local fakellm = dofile "tests/support/fakellm.lua"
---     local fake = fakellm.script { steps = { "hello", { status = 429 } } }
---     ab.model.open { model = "m", base_url = fake.url }
---     fake.log()                                   -- the requests so far
local http = require "agentbox.http"
local json = require "agentbox.json"

if package.loaded["tests.fakellm"] then return package.loaded["tests.fakellm"] end

local M = {}
package.loaded["tests.fakellm"] = M

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local server

local function own_pid()
  local file <close> = assert(io.open "/proc/self/stat")
  return file:read "n"
end

-- In the background, so that nothing waits for it: it ends with us.
local function launch(arguments)
  local command = "python3 %s/fakellm.py --watch-pid %d %s &"
  local pipe <close> = assert(io.popen(command:format(here, own_pid(), arguments or ""), "r"))
  local where = assert(pipe:read "l", "fakellm did not start")
  return { where = where }
end

--- The address of the one server, started when first asked for.
function M.address()
  server = server or launch()
  return "http://127.0.0.1:" .. server.where
end

--- A server of its own, for what a script cannot set (TLS, a Unix socket); `stop` ends it.
---@param arguments string
---@return { where: string, stop: fun(request_opts: table) }
function M.start(arguments)
  local own = launch(arguments)
  function own.stop(opts)
    opts.method, opts.proxy = "POST", false
    return http.request(opts)
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
  local put = { method = "PUT", url = address .. "/_script/" .. name, body = json.encode(script), proxy = false }
  assert(http.request(put))
  local function log()
    local response = assert(http.request { url = address .. "/_log/" .. name, proxy = false })
    return json.decode(response.body)
  end
  return { url = address .. "/s/" .. name .. "/v1", log = log }
end

--- The ids of requests that the server was told to give up.
---@return table<string, boolean>
function M.aborted()
  local ids = {}
  for _, id in ipairs(json.decode(assert(http.request { url = M.address() .. "/_aborted", proxy = false }).body)) do ids[id] = true end
  return ids
end

---@return table
function M.stats()
  return json.decode(assert(http.request { url = M.address() .. "/_stats", proxy = false }).body)
end

return M

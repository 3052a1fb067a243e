--- Requests that nobody waits for any more. Most servers give up an answer when its connection is closed; one behind a proxy
--- does not see that, and goes on to the end. With `abort_path` each try has an id of its own, and the server is told to
--- give it up when the try ends without an answer: by a deadline, a cancel, or a connection that was lost.
local fiber = require "agentbox.sys.fiber"
local http = require "agentbox.http"
local json = require "agentbox.json"
local rand = require "agentbox.sys.rand"

local M = {}

--- For the server to say that it heard.
local TELL_S = 5

---@class agentbox.OrphanWatch
---@field private spec table
---@field private id string
---@field private path string
---@field private over? boolean
local Watch = {}
Watch.__index = Watch

local function root_of(url) return (url:match "^%a+://[^/]+") end

-- vLLM puts the kind of request before the id that it was given.
local function tell(watch)
  local spec, told = watch.spec, {}
  for key, value in pairs(spec) do told[key] = value end
  told.url, told.timeout_s = root_of(spec.url) .. watch.path, TELL_S
  told.connect_timeout_s = math.min(spec.connect_timeout_s or TELL_S, TELL_S)
  told.body = json.encode { request_ids = json.array { watch.id, "chatcmpl-" .. watch.id } }
  http.request(told) -- what becomes of it changes nothing
end

--- The try has been answered, or was never sent: there is nothing to give up.
function Watch:done() self.over = true end

function Watch:__close()
  if not self.over then fiber.spawn(tell, self) end -- whoever gave it up does not wait for that
end

--- Watches over one try: adds the id to its headers. Closed without `done`, the server is told.
---@param spec table       # as for http.request
---@param path string      # "/abort_requests"
---@return agentbox.OrphanWatch
function M.watch(spec, path)
  local id = rand.uuid4()
  spec.headers[#spec.headers + 1] = { "X-Request-Id", id }
  return setmetatable({ spec = spec, id = id, path = path }, Watch)
end

return M

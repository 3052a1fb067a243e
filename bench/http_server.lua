--- Answers every request of bench/measure_http_server.lua with the same bytes. Prints its address.
local ab = require "agentbox"

local hub = ab.http_server.hub()
local BODY = ("agentbox "):rep(16)
local at <close> = assert(ab.http.serve {
  listen = "127.0.0.1:0", connections = 20000,
  routes = {
    ["GET /hello"] = function() return BODY end,
    ["GET /events"] = function(req) hub:add(req) end,
  },
})
print(at.url, require "agentbox.sys.os".pid())
io.stdout:flush()
require "agentbox.sys.os".read_stdin(1)

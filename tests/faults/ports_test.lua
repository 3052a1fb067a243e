--- Servers of ours and ports that others take (fault B49): a port is bound before its number is known, never picked before.
local http = require "agentbox.http"
local http_server = require "agentbox.http_server"
local lu = require "luaunit"

local live = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/live.lua")

local M = {}

local COUNT = 50

-- Takes what the kernel gives, and what it gives up again, all the time.
local GRABBER = [[
import socket, sys
print("up", flush=True)
held = []
while True:
    for _ in range(100):
        s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); held.append(s)
    while len(held) > 150: held.pop(0).close()
]]

local function serve(i)
  return assert(http_server.serve { listen = "127.0.0.1:0", handler = function() return tostring(i) end })
end

local function answers(server, i)
  lu.assertEquals(assert(http.request { url = server.url .. "/", keep_alive = false }).body, tostring(i))
end

function M.test_b49_no_port_is_picked_before_it_is_bound()
  local host <close> = live.sandbox "none"
  local grabber <close> = assert(host:spawn { "python3", "-c", GRABBER })
  lu.assertEquals(grabber:read { until_text = "\n", timeout_s = 20 }, "up\n")
  local servers, seen = {}, {}
  local all <close> = setmetatable(servers, { __close = function() -- luacheck: ignore
    for _, server in ipairs(servers) do server:close() end
  end })
  for i = 1, COUNT do
    servers[i] = serve(i)
    lu.assertNil(seen[servers[i].address], "two of one address")
    seen[servers[i].address] = true
  end
  for i = 1, COUNT do answers(servers[i], i) end
  -- One that begins again has the port that it is given, not the one that it had.
  for i = 1, COUNT, 10 do
    servers[i]:close()
    servers[i] = serve(-i)
    answers(servers[i], -i)
  end
  for i = 2, COUNT, 7 do
    if (i - 1) % 10 ~= 0 then answers(servers[i], i) end
  end
end

return M

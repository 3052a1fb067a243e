-- Requests that are given up before the server has taken them.
local ab = require "agentbox"
local lu = require "luaunit"

local M = {}

-- A listener whose queue is full: whoever connects waits. Ends with its standard input.
local FULL = [[exec python3 -c "
import socket, sys
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(0)
kept = []
for _ in range(4):
    c = socket.socket(); c.setblocking(False); c.connect_ex(s.getsockname()); kept.append(c)
open(sys.argv[1], 'w').write(str(s.getsockname()[1]))
sys.stdin.read()
" '%s/port']]

-- Symptom: curl closed a socket that still connected without a word, the loop went on watching its number, and the next
-- command or sandbox whose socket had that number ended the engine.
function M.test_a_socket_that_did_not_connect_is_forgotten()
  local dir = assert(ab.fs.tmpdir "agentbox-connecting-")
  local server = assert(io.popen(FULL:format(dir), "w"))
  local deadline, port = ab.time.monotonic() + 20
  repeat
    port = tonumber(ab.fs.read(dir .. "/port") or "")
    lu.assertTrue(port ~= nil or ab.time.monotonic() < deadline, "the listener is not there")
  until port
  for _ = 1, 3 do
    local response, problem = ab.http.request { url = ("http://127.0.0.1:%d/"):format(port), proxy = false, connect_timeout_s = 0.05 }
    lu.assertNil(response)
    lu.assertEquals(problem.phase, "connect")
  end
  local box <close> = assert(ab.sandbox.create { backend = "none" })
  ab.async.each({ 1, 2, 3, 4, 5, 6, 7, 8 }, function() lu.assertEquals(assert(box:exec "echo on").stdout, "on\n") end)
  server:close()
  assert(ab.fs.remove(dir, true))
end

return M

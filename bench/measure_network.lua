--- Connections through a network's list beside the same connections made at once, both to a server on the loopback.
local ab = require "agentbox"
local report = require "report"

local SERVER = [[
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(50); print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    c.sendall(c.recv(1))
    c.close()]]

-- Microseconds of each: until connect is through, and until the first byte of an answer is there.
local CLIENT = [[
import socket, sys, time
where = (socket.gethostbyname(sys.argv[1]), int(sys.argv[2]))
for _ in range(60):
    began = time.perf_counter()
    c = socket.create_connection(where)
    through = time.perf_counter()
    c.sendall(b"x"); c.recv(1)
    print((through - began) * 1e6, (time.perf_counter() - began) * 1e6)
    c.close()
    time.sleep(0.002)]]

local function sample(sb, name, port, into)
  local out = assert(sb:exec({ "python3", "-c", CLIENT, name, port }, { timeout_s = 60 }))
  for connect, answer in out.stdout:gmatch "(%S+) (%S+)\n" do
    table.insert(into.connect, tonumber(connect))
    table.insert(into.answer, tonumber(answer))
  end
end

return function(rounds)
  local outside <close> = assert(ab.sandbox.create { backend = "none" })
  local server = assert(outside:spawn { "python3", "-c", SERVER })
  local port = assert(server:read { until_text = "\n", timeout_s = 20 }):match "%d+"
  local sb <close> = assert(ab.sandbox.create {
    network = { allow = { "bench.test:" .. port }, hosts = { ["bench.test"] = "127.0.0.1" } },
  })
  local ours, direct = { connect = {}, answer = {} }, { connect = {}, answer = {} }
  for _ = 1, rounds do
    sample(sb, "bench.test", port, ours)
    sample(outside, "127.0.0.1", port, direct)
  end
  server:kill()
  server:wait(10)
  for _, what in ipairs { "connect", "answer" } do
    local name = what == "connect" and "set up" or "to the first byte of an answer"
    local mine, its = report.quantile(ours[what], 0.5), report.quantile(direct[what], 0.5)
    report.row { what = "allow-listed connection, " .. name, ours = report.us(mine), peer = "direct " .. report.us(its),
      value = mine / 1000, unit = "ms", must = what == "connect" and 0.2 or nil, better = "less" }
  end
end

--- The clock of the machine is set while rollouts run.
local fs = require "agentbox.fs"
local lu = require "luaunit"
local os_ = require "agentbox.sys.os"
local test = require "agentbox.test"

local live = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/live.lua")

local M = {}

local SCRIPT = [[
local ab = require "agentbox"
local list = { tool_calls = { { name = "list_files", arguments = {} }, { name = "run_command", arguments = { command = "true" } } } }
local problems, longest = 0, 0
for i = 1, 5 do
  local t = assert(ab.rollout.run {
    task = { task_id = "t", description = "d", verifier = { command = "true" } }, sandbox = { backend = "none" },
    model = ab.model.scripted { list, list, "done" },
  })
  problems = problems + #require "agentbox.record.check".check(t.line)
  longest = math.max(longest, t.line.finished - t.line.started)
  for _, runs in ipairs { t.line.calls, t.line.tool_runs } do
    for _, run in ipairs(runs) do longest = math.max(longest, run.t[#run.t] - run.t[1]) end
  end
end
print(problems, longest < 1000)
]]

function M.test_times_of_a_record_do_not_follow_a_clock_that_is_set()
  local library = os_.env "AGENTBOX_TEST_CLOCK_JUMP"
  if (library or "") == "" then test.skip "AGENTBOX_TEST_CLOCK_JUMP names no library to preload" end
  local host <close> = live.sandbox "none"
  assert(host:write("s.lua", SCRIPT))
  local out = assert(host:exec({ assert(fs.readlink "/proc/self/exe"), "script", "s.lua" }, {
    env = { LD_PRELOAD = library, ASAN_OPTIONS = "verify_asan_link_order=0:detect_leaks=0" },
  }))
  lu.assertEquals(out.stdout, "0\ttrue\n", out.stderr)
end

local COMMAND = [[
local ab = require "agentbox"
local sb <close> = assert(ab.sandbox.create { backend = arg[1] })
local out = assert(sb:exec("echo up; exec sleep 0.23571", {
  timeout_s = 0.5, on_output = function() assert(io.write "up\n") io.flush() end,
}))
print(out.timed_out, out.exit_code)
]]

-- The engine stops when the command has begun, and goes on when that is over and its time too.
local STOP = [[
mkfifo up
"$1" script s.lua "$2" > up &
engine=$!
exec 3< up
read word <&3
kill -STOP $engine
while pgrep -f 'sleep 0[.]23571' > gone; do :; done
sleep 0.6
kill -CONT $engine
cat <&3
wait $engine
]]

function M.test_a_command_that_ended_while_the_engine_was_stopped_is_in_time()
  local host <close> = live.sandbox "none"
  assert(host:write("s.lua", COMMAND))
  assert(host:write("stop.sh", STOP))
  for _, backend in ipairs { "native", "none" } do
    local out = assert(host:exec({ "sh", "stop.sh", assert(fs.readlink "/proc/self/exe"), backend }))
    lu.assertEquals(out.stdout, "false\t0\n", backend .. out.stderr)
    assert(host:remove "up")
  end
end

local REQUEST = [[
local ab = require "agentbox"
local answer, problem = ab.http.request { url = ("http://127.0.0.1:%d/"):format(arg[1]), timeout_s = 0.5, proxy = false }
print(answer and answer.body or problem)
]]

local SERVER = [[
import os, signal, socket, subprocess, sys, time
server = socket.create_server(("127.0.0.1", 0))
engine = subprocess.Popen([sys.argv[1], "script", "h.lua", str(server.getsockname()[1])], stdout=subprocess.PIPE)
client = server.accept()[0]
asked = b""
while b"\r\n\r\n" not in asked:
    asked += client.recv(4096)
os.kill(engine.pid, signal.SIGSTOP)
client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")
time.sleep(0.6)
os.kill(engine.pid, signal.SIGCONT)
print(engine.communicate()[0].decode(), end="")
]]

function M.test_an_answer_that_came_while_the_engine_was_stopped_is_in_time()
  local host <close> = live.sandbox "none"
  assert(host:write("h.lua", REQUEST))
  local out = assert(host:exec { "python3", "-c", SERVER, assert(fs.readlink "/proc/self/exe") })
  lu.assertEquals(out.stdout, "here\n", out.stderr)
end

return M

--- The one stream to a container split, delayed, cut and stalled; containers and engines that are killed (faults B23, B28,
--- B31; F04: nothing runs twice).
local async = require "agentbox.async"
local fs = require "agentbox.sys.fs"
local links = require "agentbox.docker.link"
local lu = require "luaunit"
local os_ = require "agentbox.sys.os"
local sandbox = require "agentbox.sandbox"

local here = arg[0]:match "^(.*/)" or "./"
local fakedocker = dofile(here .. "../support/fakedocker.lua")
local image = dofile(here .. "../support/testimage.lua")

local M = {}

local api
local REAL = (os_.env "DOCKER_HOST" or "unix:///var/run/docker.sock"):match "^unix://(.*)$"

function M.setUp()
  api = image.prepare "docker"
end

local function create(spec)
  local all = { backend = "docker", image = image.NAME }
  for key, value in pairs(spec or {}) do all[key] = value end
  return assert(sandbox.create(all))
end

-- size, delay in ms, cut after, stall after
local function through(size, delay, cut, stall)
  return fakedocker.start(("proxy %s %d %d %d %d"):format(REAL, size, delay, cut, stall))
end

local function mine()
  local list = assert(api:call("GET", "/containers/json", {
    query = { all = 1, filters = { label = { "agentbox.pid=" .. os_.pid() } } },
  }))
  return #list
end

function M.test_a_stream_in_single_bytes()
  local daemon <close> = through(1, 0, 0, 0)
  local sb <close> = create { backend = daemon.backend }
  local text = ("0123456789"):rep(2000)
  local out = assert(sb:exec("cat; echo err >&2; exit 3", { stdin = text }))
  lu.assertEquals({ out.stdout == text, out.stderr, out.exit_code }, { true, "err\n", 3 })
  assert(sb:write("f", text))
  lu.assertTrue(sb:read "f" == text)
end

function M.test_a_stream_in_odd_pieces_with_delays()
  local daemon <close> = through(7, 1, 0, 0)
  local sb <close> = create { backend = daemon.backend }
  local results = async.all {
    function() return sb:exec "echo a; sleep 0.05; echo b" end,
    function() return sb:exec "echo c; echo d >&2" end,
    function() return sb:list "/etc" end,
  }
  lu.assertEquals({ results[1].stdout, results[2].stdout, results[2].stderr, #results[3] > 2 },
    { "a\nb\n", "c\n", "d\n", true })
end

function M.test_b28_a_stream_that_is_cut_is_an_error_of_the_sandbox()
  local daemon <close> = through(0, 0, 2000, 0)
  local sb = create { backend = daemon.backend }
  local out, problem = sb:exec "echo begun > ran; head -c 100000 /dev/zero | tr '\\0' x; sleep 5"
  lu.assertNil(out)
  lu.assertEquals(problem.code, "sandbox")
  out, problem = sb:exec "true"
  lu.assertNil(out)
  lu.assertEquals(problem.code, "sandbox")
  sb:close()
  lu.assertEquals(mine(), 0)
end

function M.test_b23_nothing_is_run_twice_when_an_answer_is_lost()
  local daemon <close> = through(0, 0, 0, 200)
  local real, look = links.PATIENCE_S, links.LOOK_S
  links.PATIENCE_S, links.LOOK_S = 1, 0.1
  local sb <close> = create { backend = daemon.backend }
  local last
  for _ = 1, 20 do
    local out, problem = sb:exec "echo x >> log"
    if not out then
      last = problem
      break
    end
  end
  links.PATIENCE_S, links.LOOK_S = real, look
  lu.assertEquals(last.code, "sandbox")
  -- Every command was asked for once: an attached stream has no second try.
  local _, attaches = daemon.log():gsub("/attach", "")
  lu.assertEquals(attaches, 1)
end

function M.test_a_container_that_is_killed()
  local sb <close> = create()
  local waiting = async.spawn(function() return sb:exec "sleep 100" end)
  async.sleep(0.2)
  assert(api:call("POST", "/containers/" .. sb.id .. "/kill"))
  local _, out, problem = waiting:join(30)
  lu.assertNil(out)
  lu.assertEquals(problem.code, "sandbox")
  lu.assertStrContains(problem.msg, "died with status 137")
end

function M.test_b31_a_container_that_is_out_of_memory_says_so()
  local sb <close> = create { limits = { memory_mb = 32 } }
  -- A file system of memory has nobody who could be killed for it.
  local out, problem = sb:exec("dd if=/dev/zero of=/dev/shm/a bs=1M count=15 2>/dev/null; echo $?; rm /dev/shm/a", { timeout_s = 30 })
  lu.assertEquals(out and out.stdout, "0\n", problem and problem.msg)
  out = assert(sb:exec("head -c 100000000 /dev/zero | tail -c 90000000 > /dev/null", { timeout_s = 30 }))
  lu.assertTrue(out.oom)
  lu.assertEquals(assert(sb:exec "echo alive").stdout, "alive\n")
end

function M.test_an_image_without_a_shell()
  local sb <close> = create { image = image.BARE }
  local out = assert(sb:exec "echo hi")
  lu.assertEquals(out.exit_code, 127)
  lu.assertStrContains(out.stderr, "/bin/sh")
  assert(sb:write("a/b", "bytes"))
  lu.assertEquals(sb:read "a/b", "bytes")
  lu.assertEquals(#assert(sb:list("/workspace", { recursive = true })), 2)
end

function M.test_a_read_only_container()
  local sb <close> = create { read_only = true }
  local out = assert(sb:exec "echo x > f && cat f; echo y > /tmp/y && cat /tmp/y; echo z > /etc/z")
  lu.assertEquals(out.stdout, "x\ny\n")
  lu.assertStrContains(out.stderr, "Read-only")
  lu.assertEquals(sb:read "f", "x\n")
end

function M.test_a_runtime_that_is_not_there()
  local sb, problem = sandbox.create { backend = "docker", image = image.NAME, runtime = "no-such-runtime" }
  lu.assertNil(sb)
  lu.assertStrContains(problem.msg, "no-such-runtime")
  lu.assertEquals(mine(), 0)
end

function M.test_close_leaves_nothing_also_after_a_cancel()
  local sb = create()
  assert(sb:exec "sleep 300 & sleep 300 & true")
  sb:close()
  local making = async.spawn(function()
    local other <close> = create()
    other:exec "sleep 300"
  end)
  async.sleep(0.05)
  making:cancel()
  making:join(30)
  lu.assertEquals(mine(), 0)
end

local CHILD = [[
local sb = assert(require "agentbox".sandbox.create { backend = "docker", image = "%s" })
io.stdout:write(sb.id, "\n")
io.stdout:flush()
sb:exec "sleep 300"
]]

-- Another engine that is killed: its container ends with the stream, and what is left of it the next one removes. One
-- that lives keeps its own.
function M.test_a_dead_engine_and_a_living_one()
  local script = assert(fs.tmpdir "agentbox-test-") .. "/child.lua"
  assert(fs.write(script, CHILD:format(image.NAME)))
  local program = assert(fs.readlink "/proc/self/exe")
  local pipe = assert(io.popen(("%s script %s 2>/dev/null & echo $!; wait"):format(program, script), "r"))
  local pid = pipe:read "n"
  pipe:read "l"
  local id = assert(pipe:read "l", "the child made no container")
  local sweep = require "agentbox.docker.sweep"
  assert(sweep.run(api))
  lu.assertTrue(assert(api:call("GET", "/containers/" .. id .. "/json")).State.Running)
  os.execute("kill -9 " .. pid)
  pipe:close()
  local state
  for _ = 1, 100 do
    local found = api:call("GET", "/containers/" .. id .. "/json")
    state = found and found.State.Running
    if not state then break end
    async.sleep(0.05)
  end
  lu.assertFalse(state, "the container outlives its engine")
  lu.assertTrue(assert(sweep.run(api)) >= 1)
  lu.assertNil((api:call("GET", "/containers/" .. id .. "/json")))
  fs.remove(script:match "^(.*)/", true)
end

-- The volume with the guest is filled once, however many come at the same time.
function M.test_many_at_once_on_an_engine_that_has_nothing_yet()
  local guest = require "agentbox.docker.guest"
  for _, suffix in ipairs { "-filled", "" } do api:call("DELETE", "/volumes/" .. guest.volume() .. suffix) end
  local first, second = through(0, 0, 0, 0), through(0, 0, 0, 0)
  local makers = {}
  for i = 1, 6 do
    makers[i] = function()
      local sb <close> = create { backend = (i % 2 == 0 and first or second).backend }
      return assert(sb:exec("echo " .. i)).stdout
    end
  end
  lu.assertEquals(async.all(makers), { "1\n", "2\n", "3\n", "4\n", "5\n", "6\n" })
  getmetatable(first).__close(first)
  getmetatable(second).__close(second)
end

return M

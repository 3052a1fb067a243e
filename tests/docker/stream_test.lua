--- The one stream to a container split, delayed, cut and stalled; containers and engines that are killed (faults B13, B23, B28,
--- B31, B34, B39, B40, B41, B46; F04: nothing runs twice). AGENTBOX_TEST_ENGINE=podman does it with podman.
local async = require "agentbox.async"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local links = require "agentbox.docker.link"
local lu = require "luaunit"
local os_ = require "agentbox.sys.os"
local sandbox = require "agentbox.sandbox"
local test = require "agentbox.test"

local here = arg[0]:match "^(.*/)" or "./"
local fakedocker = dofile(here .. "../support/fakedocker.lua")
local image = dofile(here .. "../support/testimage.lua")

local M = {}

local api
local ENGINE = os_.env "AGENTBOX_TEST_ENGINE" or "docker"
local REAL = (os_.env(ENGINE == "docker" and "DOCKER_HOST" or "CONTAINER_HOST") or "unix:///var/run/docker.sock"):match "^unix://(.*)$"

function M.setUp()
  if ENGINE == "podman" and not os_.env "AGENTBOX_TEST_PODMAN" then test.skip "no podman here" end
  api = image.prepare(ENGINE)
  api.swept = true -- or the first sandbox's sweep may go on beside, and after, a test
end

local function create(spec)
  local all = { backend = ENGINE, image = image.NAME }
  for key, value in pairs(spec or {}) do all[key] = value end
  return assert(sandbox.create(all))
end

-- size, delay in ms, cut after, stall after
local function through(size, delay, cut, stall)
  return fakedocker.start(("proxy %s %d %d %d %d"):format(REAL, size, delay, cut, stall), nil, ENGINE)
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

function M.test_b13_five_hundred_answers_through_a_slow_and_splitting_socket()
  local daemon <close> = through(5, 0, 0, 0)
  local sb <close> = create { backend = daemon.backend }
  for i = 1, 500 do
    local out = assert(sb:exec("echo hello " .. i))
    lu.assertEquals({ out.stdout, out.exit_code }, { ("hello %d\n"):format(i), 0 })
  end
end

-- The networks of the engine, sorted.
local function networks()
  local names = {}
  for _, one in ipairs(assert(api:call("GET", "/networks"))) do names[#names + 1] = one.Name end
  table.sort(names)
  return names
end

function M.test_b39_no_sandbox_makes_a_network()
  local before = networks()
  local kinds = { "none", "none", "none", "none" }
  -- A daemon without networks, as the tests' own, has none to give.
  if table.concat(before, " "):find "bridge" or ENGINE == "podman" then kinds[5], kinds[6] = "full", "full" end
  local made = async.each(kinds, function(kind)
    local sb, problem = sandbox.create { backend = ENGINE, image = image.NAME, network = kind }
    if not sb and kind == "full" then return tostring(problem.msg) end -- where podman's network cannot be had
    return assert(sb, problem)
  end, { limit = 6 })
  lu.assertEquals(networks(), before)
  for _, sb in ipairs(made) do
    if type(sb) ~= "string" then sb:close() end
  end
  lu.assertEquals(networks(), before)
end

function M.test_b40_creations_wait_for_their_turn_and_failed_ones_can_be_made_again()
  local daemon <close> = fakedocker.start(("busy %s 5"):format(REAL), nil, ENGINE)
  sandbox.limit_boots(3)
  local restored <close> = setmetatable({}, { __close = function() sandbox.limit_boots(8) end }) -- luacheck: ignore
  local jobs = {}
  for i = 1, 12 do jobs[i] = i end
  local refused = 0
  local outs = async.each(jobs, function(i)
    for _ = 1, 12 do
      local sb <close>, problem = sandbox.create { backend = daemon.backend, image = image.NAME }
      if sb then return assert(sb:exec("echo " .. i)).stdout end
      lu.assertEquals(problem.code, "sandbox")
      lu.assertStrContains(problem.msg, "on purpose")
      refused = refused + 1
    end
  end, { limit = 12 })
  for i = 1, 12 do lu.assertEquals(outs[i], i .. "\n") end
  lu.assertTrue(refused >= 2)
  local most = 0
  for now in daemon.log():gmatch "creating (%d+)" do most = math.max(most, tonumber(now)) end
  lu.assertTrue(most >= 1 and most <= 3, most)
  lu.assertEquals(mine(), 0)
end

function M.test_b41_an_images_entry_point_is_not_in_the_way()
  local base = create()
  for i, entry in ipairs { { "/bin/false" }, { "sh", "-c", "exit 7" }, { "/no/such/program" } } do
    local tag = "agentbox-test-entry" .. i
    local id = assert(api:call("POST", "/commit", { query = { container = base.id, repo = tag }, json = { Entrypoint = json.array(entry) } })).Id
    local sb <close> = create { image = tag }
    lu.assertEquals(assert(sb:exec "echo ok").stdout, "ok\n")
    sb:close()
    api:call("DELETE", "/images/" .. id, { query = { force = 1 } })
  end
  base:close()
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

function M.test_b46_a_container_that_cannot_start_says_why()
  local sb, problem = sandbox.create { backend = ENGINE, image = image.NAME, runtime = "no-such-runtime" }
  if sb then sb:close() end
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
local sb = assert(require "agentbox".sandbox.create { backend = "%s", image = "%s" })
io.stdout:write(sb.id, "\n")
io.stdout:flush()
sb:exec "sleep 300"
]]

-- Another engine that is killed: its container ends with the stream, and what is left of it the next one removes. One
-- that lives keeps its own.
function M.test_b34_a_dead_engine_and_a_living_one()
  local script = assert(fs.tmpdir "agentbox-test-") .. "/child.lua"
  assert(fs.write(script, CHILD:format(ENGINE, image.NAME)))
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

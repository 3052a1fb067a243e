--- The store where there is no room, and where there can be no index.
local lu = require "luaunit"
local async = require "agentbox.async"
local fs = require "agentbox.sys.fs"
local store = require "agentbox.store"
local test = require "agentbox.test"
local traj = require "agentbox.traj"

local here = arg[0]:match "^(.*)/[^/]*$"
local made = dofile(here .. "/../support/rollouts.lua")
local binary = assert(fs.realpath "/proc/self/exe")

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-store-room") end

function M.tearDown()
  assert(fs.remove(dir, true))
  assert(fs.remove(dir .. ".stderr", true))
end

-- A file system of 600 KiB at the folder, until the test ends.
local function small_disk()
  if not os.execute(("mount -t tmpfs -o size=600k none '%s' 2>/dev/null"):format(dir)) then
    test.skip "cannot mount a small tmpfs here"
  end
  return setmetatable({}, { __close = function() os.execute(("umount '%s'"):format(dir)) end })
end

local function sample(n, bytes)
  return made.sample({ id = "r-" .. n, run_id = "r" }, { output = ("x"):rep(bytes or 1000) }):finish()
end

local function fill(leave_kib)
  local file = assert(io.open(dir .. "/ballast", "wb"))
  while file:write(("b"):rep(4096)) and file:flush() do end
  file:close()
  os.execute(("truncate -s -%dK '%s/ballast'"):format(leave_kib, dir))
end

-- Twenty rollouts end on a full disk; they wait, nothing is lost, and the run goes on when there is room.
function M.test_b43_a_full_disk_is_waited_for()
  local disk <close> = small_disk() -- luacheck: ignore disk
  local s <close> = assert(store.open(dir, { run_id = "r", full_wait_s = 60 }))
  assert(s:append(sample(0)))
  fill(8)
  local stored = 0
  async.scope(function(scope)
    for n = 1, 20 do
      scope:spawn(function()
        assert(s:append(sample(n)))
        stored = stored + 1
      end)
    end
    while not s.full_since do async.sleep(0.01) end
    scope:spawn(function() assert(s:ack(assert(s:group { id = ("g"):rep(9000), members = { "r-0" } }))) end)
    lu.assertTrue(stored < 20)
    assert(fs.remove(dir .. "/ballast"))
  end)
  lu.assertEquals(stored, 20)
  lu.assertNil(s.full_since)
  lu.assertEquals({ s:cursor() }, { 1, 1 })
  local n = 0
  for _ in traj.each(dir .. "/r") do n = n + 1 end
  lu.assertEquals(n, 21)
  lu.assertEquals(assert(require "agentbox.store.check".check(dir)).problems, {})
end

function M.test_without_patience_a_full_disk_is_an_error()
  local disk <close> = small_disk() -- luacheck: ignore disk
  local s <close> = assert(store.open(dir, { run_id = "r" }))
  fill(8)
  local ok, problem
  for n = 1, 40 do
    ok, problem = s:append(sample(n, 10000))
    if not ok then break end
  end
  lu.assertNil(ok)
  lu.assertEquals(problem.code, "full")
  assert(fs.remove(dir .. "/ballast"))
  assert(s:append(sample(99)))
end

-- The writer as a process of its own, with failure points armed.
local function write(count, faults)
  local command = ("AGENTBOX_FAULTS='%s' '%s' script '%s/store_writer.lua' '%s/../support' '%s' r %d 2>'%s.stderr'")
    :format(faults, binary, here, here, dir, count, dir)
  local pipe = assert(io.popen(command, "r"))
  local ids = {}
  for id in pipe:lines() do ids[#ids + 1] = id end
  lu.assertTrue(pipe:close())
  return ids, fs.read(dir .. ".stderr")
end

local function check_written(count)
  local s <close> = assert(store.open(dir, { run_id = "r" }))
  local n = 0
  for _ in pairs(s:finished()) do n = n + 1 end
  lu.assertEquals(n, count)
end

local NO_INDEX = {
  ["sqlite.network:0:1"] = "is on NFS, where SQLite's WAL is not safe",
  ["sqlite.wal:0:1"] = "cannot hold a WAL",
  ["sqlite.load:0:1"] = "needs SQLite",
  ["sqlite.commit:1:28"] = "has no index",
}

-- Where there can be no index, the run says so once and goes on without.
function M.test_a_run_goes_on_without_an_index()
  for faults, says in pairs(NO_INDEX) do
    local ids, said = write(70, faults)
    lu.assertEquals(#ids, 70)
    local _, times = said:gsub("has no index", "")
    lu.assertEquals(times, 1, said)
    lu.assertStrContains(said, says)
    check_written(70)
    assert(fs.remove(dir, true))
    assert(fs.mkdir(dir))
  end
end

return M

--- The store under kill -9 and under failing system calls, with the real binary as the writer.
local lu = require "luaunit"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local rand = require "agentbox.sys.rand"
local store = require "agentbox.store"
local traj = require "agentbox.traj"

local here = arg[0]:match "^(.*)/[^/]*$"
local binary = assert(fs.realpath "/proc/self/exe")

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-store-faults") end

function M.tearDown()
  assert(fs.remove(dir, true))
  assert(fs.remove(dir .. ".stderr", true))
end

-- Starts the writer, whose stderr goes beside the folder (which may be full); the first line it prints is its process id.
local function writer(run, count, faults)
  local command = ("echo $$; AGENTBOX_FAULTS='%s' exec '%s' script '%s/store_writer.lua' '%s/../support' '%s' %s %d 2>'%s.stderr'")
      :format(faults or "", binary, here, here, dir, run, count, dir)
  local pipe = assert(io.popen(command, "r"))
  return pipe, assert(pipe:read "n", "the writer did not start"), pipe:read "l"
end

local function rest_of(pipe, into)
  for id in pipe:lines() do into[#into + 1] = id end
  return pipe:close()
end

local function stored_ids(run)
  local seen = {}
  for t in traj.each(dir .. "/" .. run) do
    lu.assertNil(seen[t.id])
    seen[t.id] = true
    for call in t:calls() do assert(t:body(call, "response")) end
  end
  return seen
end

local function no_torn_document()
  for _, entry in ipairs(assert(fs.list(dir))) do
    if entry.name:find "%.json$" then assert(json.decode(assert(fs.read(dir .. "/" .. entry.name)))) end
  end
end

-- What a killed writer had announced is there, whole, and its run can go on.
local function check_after_kill(run, announced)
  local s <close> = assert(store.open(dir, { run_id = run }))
  lu.assertNotNil(s)
  no_torn_document()
  if #announced == 0 then return end
  local seen = stored_ids(run)
  for _, id in ipairs(announced) do lu.assertTrue(seen[id], id .. " was announced and is not there") end
end

function M.test_kill_at_random_moments()
  local random = rand.new(5)
  local kills = os.getenv "AGENTBOX_SOAK" and 200 or 25
  for n = 1, kills do
    local run, announced = "run" .. n, {}
    local pipe, pid = writer(run, 100000)
    for i = 1, random:int(0, 12) do announced[i] = pipe:read "l" end
    for _ = 1, random:int(0, 300000) do end
    os.execute(("kill -9 %d"):format(pid))
    rest_of(pipe, announced)
    check_after_kill(run, announced)
  end
  lu.assertEquals(#assert(fs.list(dir)) > kills, true)
end

function M.test_the_killed_writers_run_goes_on()
  local pipe, pid = writer("again", 100000)
  local first = {}
  for i = 1, 3 do first[i] = pipe:read "l" end
  os.execute(("kill -9 %d"):format(pid))
  rest_of(pipe, first)
  local before = 0
  do
    local s <close> = assert(store.open(dir, { run_id = "again" }))
    lu.assertNotNil(s)
  end
  for _ in traj.each(dir .. "/again") do before = before + 1 end
  local second = {}
  lu.assertTrue(rest_of((writer("again", 5)), second))
  lu.assertEquals(#second, 5)
  local after = 0
  for _ in traj.each(dir .. "/again") do after = after + 1 end
  lu.assertEquals(after, before + 5)
end

function M.test_a_full_disk()
  local test = require "agentbox.test"
  if not os.execute(("mount -t tmpfs -o size=400k none '%s' 2>/dev/null"):format(dir)) then
    test.skip "cannot mount a small tmpfs here"
  end
  local _ <close> = setmetatable({}, { __close = function() os.execute(("umount '%s'"):format(dir)) end })
  local announced = {}
  local pipe = writer("full", 1000)
  lu.assertNil(rest_of(pipe, announced))
  lu.assertTrue(#announced > 2)
  lu.assertStrContains(assert(fs.read(dir .. ".stderr")), "cannot record")
  no_torn_document()
  local seen, n = stored_ids "full", 0
  for _ in pairs(seen) do n = n + 1 end
  lu.assertEquals(n, #announced)
end

local POINTS = { "fs.create", "fs.write", "fs.fsync", "fs.syncdir", "fs.rename", "file.fdatasync" }
local ENOSPC, EIO = 28, 5

-- Each named call fails at each of its turns: a clear error, and nothing half written.
function M.test_failing_system_calls()
  local failures = 0
  for _, point in ipairs(POINTS) do
    for nth = 1, 9 do
      local run = point:gsub("%.", "-") .. nth
      local announced = {}
      local pipe = writer(run, 4, ("%s:%d:%d"):format(point, nth, nth % 2 == 0 and EIO or ENOSPC))
      if not rest_of(pipe, announced) then
        failures = failures + 1
        local said = assert(fs.read(dir .. ".stderr"))
        lu.assertStrContains(said, "cannot record")
        lu.assertNil(said:find("traceback", 1, true))
      end
      no_torn_document()
      check_after_kill(run, announced)
    end
  end
  lu.assertTrue(failures > 15, "only " .. failures .. " of the armed points were met")
end

return M

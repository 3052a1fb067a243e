--- The crash matrix: a run is killed at every write point and at random moments, goes on, and ends as one that was never
--- killed: the same rollouts with the same content, every rule kept, each group delivered in order and none left out.
---
--- A short form by default; with AGENTBOX_SOAK, 500 rollouts, 200 random moments and many turns of each point.
local lu = require "luaunit"
local async = require "agentbox.async"
local check = require "agentbox.store.check".check
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local rand = require "agentbox.sys.rand"
local traj = require "agentbox.traj"

local here = arg[0]:match "^(.*)/[^/]*$"
local binary = assert(fs.realpath "/proc/self/exe")
local SOAK = os.getenv "AGENTBOX_SOAK" ~= nil
local COUNT = SOAK and 500 or 32

local M = {}
local dir, expected

function M.setUp() dir = assert(fs.tmpdir "agentbox-crash") end

function M.tearDown() assert(fs.remove(dir, true)) end

-- Starts the run in a folder; its process id is what it prints first.
local function start(folder, faults)
  assert(fs.mkdir(folder, true))
  local pipe = assert(io.popen(("echo $$; TMPDIR='%s' AGENTBOX_FAULTS='%s' exec '%s' script '%s/crash_run.lua' '%s' %d 2>'%s/stderr'")
    :format(dir, faults or "", binary, here, folder, COUNT, folder), "r")) -- the dead leave temporary files
  return pipe, assert(pipe:read "n", "the run did not start")
end

-- Lets the run end by itself; whether it said that it was done.
local function finish(pipe)
  local said = pipe:read "a"
  pipe:close()
  return said:find "done" ~= nil
end

-- What a rollout is, without times and without where it is kept.
local function content_of(t)
  local calls = {}
  for call in t:calls() do
    calls[#calls + 1] = { call.tokens, assert(t:body(call, "response")), call.finish.norm }
  end
  return json.encode { t.final_status, t.stop_reason, t.reward, t.messages, calls, t.line.seed, t.line.attempt }
end

local function contents(folder)
  local found = {}
  for t in traj.each(folder .. "/run") do
    lu.assertNil(found[t.id], "twice: " .. t.id)
    found[t.id] = content_of(t)
  end
  return found
end

local function documents(folder)
  local n = 0
  for _, entry in ipairs(assert(fs.list(folder))) do
    if entry.name:find "%.json$" then
      n = n + 1
      assert(json.decode(assert(fs.read(folder .. "/" .. entry.name))), entry.name)
    end
  end
  return n
end

-- A group may come twice only when the run was killed between its delivery and its acknowledgement.
local function check_delivery(folder, kills)
  local at, ids, again = 0, {}, 0
  for line in io.lines(folder .. "/delivered") do
    local seq, id = line:match "^(%d+) (.+)$"
    seq = tonumber(seq)
    if seq == at then again = again + 1 else lu.assertEquals(seq, at + 1) end
    lu.assertEquals(ids[seq] or id, id)
    at, ids[seq] = seq, id
  end
  lu.assertEquals(at, COUNT // 4)
  lu.assertTrue(again <= kills, again .. " deliveries were repeated")
end

local function check_end(folder, kills, what)
  local report = assert(check(folder .. "/run"))
  lu.assertEquals(report.problems, {}, what)
  lu.assertEquals({ report.trajectories, report.groups }, { COUNT, COUNT // 4 }, what)
  local found = contents(folder)
  for id, content in pairs(expected) do lu.assertEquals(found[id], content, what) end
  lu.assertEquals(documents(folder), COUNT, what)
  check_delivery(folder, kills)
end

local function undisturbed()
  if expected then return end
  local folder = dir .. "/undisturbed"
  lu.assertTrue(finish((start(folder))))
  expected = contents(folder)
  check_end(folder, 0, "undisturbed")
end

local function go_on(folder, kills, what)
  lu.assertTrue(finish((start(folder))), what .. ": " .. (fs.read(folder .. "/stderr") or ""))
  check_end(folder, kills, what)
  assert(fs.remove(folder, true))
end

local POINTS = {
  "fs.create", "fs.write", "fs.fsync", "fs.syncdir", "fs.rename", "file.fdatasync", "sqlite.commit", "sqlite.load",
}

-- At which of its passes a point kills: the first one, and some in the middle.
local function turns(random)
  local list = { 1 }
  for _ = 1, SOAK and 8 or 1 do list[#list + 1] = random:int(4, COUNT * 2) end
  return list
end

function M.test_killed_at_every_write_point()
  undisturbed()
  local random, killed = rand.new(11), {}
  for _, point in ipairs(POINTS) do
    for _, nth in ipairs(turns(random)) do
      local what = ("%s:%d"):format(point, nth)
      local folder = dir .. "/" .. what
      if not finish((start(folder, what .. ":kill"))) then killed[point] = true end
      go_on(folder, 1, what)
    end
  end
  for _, point in ipairs(POINTS) do
    lu.assertTrue(killed[point], "no run was killed at " .. point .. ": an engine with failure points is wanted (the preset dev)")
  end
end

local ENOSPC = 28

-- The run waits for room at whatever it writes, and ends as if there had always been some. One that could not even begin
-- says so, and is begun again.
function M.test_a_full_disk_at_every_write_point()
  undisturbed()
  local random, met = rand.new(13), false
  for _, point in ipairs { "fs.create", "fs.write", "fs.fsync", "fs.syncdir", "fs.rename", "file.fdatasync" } do
    for _, nth in ipairs(turns(random)) do
      local what = ("%s:%d:%d"):format(point, nth, ENOSPC)
      local folder = dir .. "/" .. what
      local ended = finish((start(folder, what)))
      met = met or assert(fs.read(folder .. "/stderr")):find("disk is full", 1, true) ~= nil
      if ended then
        check_end(folder, 0, what)
      else
        lu.assertStrContains(assert(fs.read(folder .. "/stderr")), "No space left")
        go_on(folder, 0, what)
      end
      assert(fs.remove(folder, true))
    end
  end
  lu.assertTrue(met, "no run met a full disk: an engine with failure points is wanted (the preset dev)")
end

function M.test_killed_at_random_moments()
  undisturbed()
  local random = rand.new(12)
  for n = 1, SOAK and 200 or 6 do
    local folder, kills = dir .. "/moment" .. n, random:int(1, 3)
    for _ = 1, kills do
      local pipe, pid = start(folder)
      async.sleep(random:float() * (SOAK and 3 or 0.6))
      os.execute(("kill -9 %d 2>/dev/null"):format(pid))
      finish(pipe)
    end
    go_on(folder, kills, "moment " .. n)
  end
end

return M

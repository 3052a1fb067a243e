--- A sync that fails, or that nobody saw the end of: the kernel tells of it once, so it is never made again as if it were
--- fine. What it was to cover is written anew or is not there.
local lu = require "luaunit"
local fs = require "agentbox.sys.fs"
local check = require "agentbox.store.check".check
local traj = require "agentbox.traj"

local here = arg[0]:match "^(.*)/[^/]*$"
local binary = assert(fs.realpath "/proc/self/exe")

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-store-sync") end

function M.tearDown() assert(fs.remove(dir, true)) end

local START = [[
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local made = dofile(arg[1] .. "/rollouts.lua")
local store = require "agentbox.store"
local s <close> = assert(store.open(arg[2], { run_id = "r", agentbox_json = false }))
local function rollout(id, long)
  local ro, ids, lps = made.new { id = id, run_id = "r" }, {}, {}
  for i = 1, long or 3 do ids[i], lps[i] = i, -i / 977 end
  ro:reply(made.object("role", "assistant", "content", "a"), { bare = true, tokens = { prompt = { 1 }, out = ids, lp = lps } })
  return ro:finish()
end
]]

-- Runs a script in an engine of its own with failure points armed; gives what it said on stderr.
local function run(faults, script)
  assert(fs.write(dir .. "/s.lua", START .. script))
  lu.assertTrue(os.execute(("AGENTBOX_FAULTS='%s' '%s' script '%s/s.lua' '%s/../support' '%s' 2>'%s/stderr'")
    :format(faults, binary, dir, here, dir, dir)), fs.read(dir .. "/stderr"))
  return assert(fs.read(dir .. "/stderr"))
end

local function check_stored(ids)
  lu.assertEquals(assert(check(dir .. "/r")).problems, {})
  local found = {}
  for t in traj.each(dir .. "/r") do found[#found + 1] = t.id end
  table.sort(found)
  lu.assertEquals(table.concat(found, " "), ids)
end

function M.test_lines()
  run("file.fdatasync:1:5", [[
    local ok, problem = s:append(rollout "a")
    assert(not ok and problem.code == "io")
    assert(s:append(rollout "b"))
    assert(s:append(rollout "a"))]])
  check_stored "a b"
end

-- The name of a new file is on the disk or the file is not there.
function M.test_the_name_of_a_segment()
  run("fs.syncdir:3:5", [[
    local ok, problem = s:append(rollout "a")
    assert(not ok and problem.code == "io")
    assert(not require "agentbox.fs".exists(arg[2] .. "/r/trajectories-00000.jsonl"))
    assert(s:append(rollout "b"))]])
  check_stored "b"
end

-- One is packed into the same file while it is synced for the other: it is packed again, into another file. Where it was
-- packed before that sync began, the sync was its own as well.
function M.test_token_planes()
  run("file.fdatasync:1:5", [[
    local failed = {}
    async.scope(function(scope)
      for _, id in ipairs { "a", "b" } do
        scope:spawn(function()
          local ok, problem = s:append(rollout(id, 5000))
          assert(ok or problem.code == "io")
          if not ok then failed[#failed + 1] = id end
        end)
      end
    end)
    assert(#failed > 0)
    for _, id in ipairs(failed) do assert(s:append(rollout(id, 5000))) end]])
  check_stored "a b"
  lu.assertStrContains(assert(fs.read(dir .. "/r/trajectories-00000.jsonl")), '"p":[1,')
end

-- A fiber that packs for long is sliced anywhere, here between a look at the file's end and the write there: what the sync of
-- another one loses meanwhile is packed again, and is no error of the one that packs.
function M.test_token_planes_that_were_being_packed()
  run("file.fdatasync:3:5", [[
    assert(s:append(rollout("first", 5000)))
    local file, looks, failed = s._planes._file, 0, false
    s._planes._file = setmetatable({ size = function()
      looks = looks + 1
      local size = file:size()
      while looks > 2 and not failed do async.yield() end
      return size
    end, sync = function()
      while looks < 3 do async.yield() end
      return file:sync()
    end }, { __index = function(_, name) return function(_, ...) return file[name](file, ...) end end })
    async.scope(function(scope)
      for _, id in ipairs { "a", "b" } do
        scope:spawn(function()
          local ok, problem = s:append(rollout(id, 5000))
          if ok then return end
          assert(problem.code == "io" and not failed, problem)
          failed = id
        end)
      end
    end)
    assert(looks > 2)
    assert(s:append(rollout(failed, 5000)))]])
  check_stored "a b first"
end

-- Whoever is cancelled while something is synced has not seen how that ended.
local CANCELLED = [[
  local append = fiber.spawn(function() %s end)
  while append:status() ~= "waiting" do async.yield() end
  append:cancel()
  append:join()
]]

function M.test_lines_that_were_being_synced()
  run("", CANCELLED:format 's:append(rollout "a")' .. 'assert(s:append(rollout "b"))')
  check_stored "a b"
end

function M.test_token_planes_that_were_being_synced()
  run("", CANCELLED:format 's:append(rollout("a", 5000))' .. [[
    local ok, problem = s:append(rollout("b", 5000))
    assert(ok, problem)]])
  lu.assertEquals(assert(check(dir .. "/r")).problems, {})
  lu.assertStrContains(assert(fs.read(dir .. "/r/trajectories-00000.jsonl")), '"p":[1,')
end

function M.test_groups_that_were_being_synced()
  run("", 'assert(s:append(rollout "a")) assert(s:append(rollout "b"))'
    .. CANCELLED:format 's:group { id = "g1", members = { "a" } }'
    .. 'assert(assert(s:group { id = "g2", members = { "b" } }) == 2)')
  lu.assertEquals(assert(check(dir .. "/r")).groups, 2)
  check_stored "a b"
end

-- Events are no truth that anything hangs on.
function M.test_events()
  local said = run("file.fdatasync:1:5", 's:event "begin" assert(s:append(rollout "a"))')
  lu.assertStrContains(said, "events.jsonl: what was added last may be lost")
  check_stored "a"
end

-- Bodies that are blobs: the folder's name, the file, and the file's name in it.
function M.test_blobs()
  local script = [[
    local function append(id)
      local ro = made.new { id = id, run_id = "r" }
      ro:reply(made.object("role", "assistant", "content", "a"), { raw_response = "a body that is\nno line of JSON" })
      return s:append(ro:finish())
    end
    local ok, problem = append "a"
    assert(not ok and problem.code == "io", problem)
    assert(append "b")]]
  for _, point in ipairs { "fs.syncdir:3:5", "fs.syncdir:4:5", "fs.syncdir:5:5", "fs.fsync:2:5" } do
    run(point, script)
    check_stored "b"
    assert(fs.remove(dir .. "/r", true))
  end
end

-- What is in flight waits in a file without a name; where that has no room it waits in memory.
function M.test_texts_in_flight_when_their_file_is_full()
  for _, point in ipairs { "scratch.write:0:28", "scratch.write:1:28", "scratch.write:4:28", "scratch.write:6:28" } do
    run(point, [[
      local ro = made.new { id = "a", run_id = "r", scratch = assert(require "agentbox.sys.scratch".open(s.run_dir)) }
      for i = 1, 5 do
        ro:reply(made.object("role", "assistant", "content", "turn " .. i), { raw_response = ("a body that is\nno line of JSON %d"):format(i) })
      end
      assert(s:append(ro:finish()))]])
    check_stored "a"
    for t in traj.each(dir .. "/r") do
      local n = 0
      for call in t:calls() do
        n = n + 1
        lu.assertEquals(assert(t:body(call, "response")), ("a body that is\nno line of JSON %d"):format(n))
        assert(t:body(call, "request"))
      end
      lu.assertEquals(n, 5)
    end
    assert(fs.remove(dir .. "/r", true))
  end
end

return M

--- The store as a runner uses it: what is done, closed groups, the cursor, events.
local lu = require "luaunit"
local async = require "agentbox.async"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local sqlite = require "agentbox.sys.sqlite"
local store = require "agentbox.store"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-store-run") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function open(opts)
  opts = opts or {}
  opts.run_id = "run-1"
  return store.open(dir, opts)
end

local function member(id, group, index, attempt, result)
  local ro = made.sample({ id = id, attempt = attempt, group = group and { id = group, index = index, size = 2 } })
  return ro:finish(result)
end

local function segment(n) return ("%s/run-1/trajectories-%05d.jsonl"):format(dir, n) end

local INFRA = {
  status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox" }, reward = { scored = false },
}

local function check_finished(found)
  lu.assertEquals(found["g1/0"].attempts, 2)
  lu.assertEquals({ found["g1/0"].id, found["g1/0"].attempt, found["g1/0"].scored, found["g1/0"].reward }, { "a", 1, true, 1.0 })
  lu.assertEquals({ found["g1/1"].status, found["g1/1"].class, found["g1/1"].scored }, { "failed", "sandbox", false })
  lu.assertNil(found["g1/1"].reward)
  lu.assertEquals(found["solo"].stop, "final_answer")
  local n = 0
  for _ in pairs(found) do n = n + 1 end
  lu.assertEquals(n, 3)
end

function M.test_what_is_finished()
  do
    local s <close> = assert(open())
    lu.assertEquals(s:finished(), {})
    assert(s:append(member("a", "g1", 0, 0, INFRA)))
    assert(s:append(member("b", "g1", 1, 0, INFRA)))
    assert(s:append(member("a", "g1", 0, 1)))
    assert(s:append(member "solo"))
    check_finished(s:finished())
  end
  local s <close> = assert(open { resume = true })
  check_finished(s:finished())
end

function M.test_resume_is_met_or_refused()
  local s, problem = open { resume = true }
  lu.assertNil(s)
  lu.assertEquals(problem.code, "notfound")
  assert(open { resume = false, meta = { tasks = "t" } }):close()
  s, problem = open { resume = false }
  lu.assertNil(s)
  lu.assertEquals(problem.code, "exists")
  local again <close> = assert(open { resume = true, meta = { tasks = "other" } })
  lu.assertEquals(again.run.tasks, "t")
end

local function seqs(s, after)
  local out = {}
  for group in s:groups(after) do out[#out + 1] = group.seq .. group.id end
  return out
end

function M.test_groups_are_delivered_in_order_and_not_again()
  do
    local s <close> = assert(open())
    lu.assertEquals({ s:cursor() }, { 0, 0 })
    for n = 1, 3 do lu.assertEquals(s:group { id = "g" .. n, members = { "a", "b" }, scored = 2 }, n) end
    lu.assertEquals(s:group { id = "g2", members = { "a", "b" } }, 2)
    lu.assertEquals(seqs(s), { "1g1", "2g2", "3g3" })
    assert(s:ack(2))
    assert(s:ack(1))
    lu.assertEquals(seqs(s), { "3g3" })
    local ok, problem = s:ack(4)
    lu.assertNil(ok)
    lu.assertEquals(problem.code, "badarg")
  end
  local s <close> = assert(open { resume = true })
  lu.assertEquals({ s:cursor() }, { 2, 3 })
  lu.assertEquals(seqs(s), { "3g3" })
  lu.assertEquals(seqs(s, 0), { "1g1", "2g2", "3g3" })
  lu.assertEquals(s:group { id = "g3", members = { "a" } }, 3)
  lu.assertEquals(s:group { id = "g4", members = { "a" } }, 4)
  for group in s:groups(3) do lu.assertEquals(json.encode(group.members), '["a"]') end
end

function M.test_groups_that_close_at_once_have_each_their_number()
  local s <close> = assert(open())
  local ids, seen = {}, {}
  for n = 1, 20 do ids[n] = "g" .. n end
  async.each(ids, function(id) seen[assert(s:group { id = id, members = {} })] = id end, { limit = 20 })
  lu.assertEquals(#seen, 20)
  for group in s:groups(0) do lu.assertEquals(group.id, seen[group.seq]) end
end

function M.test_a_torn_group_is_cut()
  do
    local s <close> = assert(open())
    assert(s:group { id = "g1", members = {} })
    assert(s:group { id = "g2", members = {} })
  end
  local path = dir .. "/run-1/groups.jsonl"
  local whole = assert(fs.read(path))
  assert(fs.write(path, whole:sub(1, -10)))
  local s <close> = assert(open())
  lu.assertEquals(seqs(s, 0), { "1g1" })
  lu.assertEquals(s:group { id = "g2", members = {} }, 2)
end

-- With its index or without: whoever reads the index only would take the damaged one for done.
function M.test_a_damaged_line_counts_as_not_done()
  do
    local s <close> = assert(open())
    assert(s:append(member "a"))
    assert(s:append(member "b"))
  end
  assert(fs.write(segment(0), (assert(fs.read(segment(0))):gsub("Fixed", "Mixed", 1))))
  for _ = 1, 2 do
    local s <close> = assert(open())
    local found = s:finished()
    lu.assertNil(found.a)
    lu.assertNotNil(found.b)
    assert(fs.remove(dir .. "/run-1/run.db"))
  end
end

local function write(ids)
  local s <close> = assert(open())
  for _, id in ipairs(ids) do assert(s:append(member(id))) end
end

local function finished()
  local s <close> = assert(open())
  local ids = {}
  for _, slot in pairs(s:finished()) do ids[#ids + 1] = ("%s@%d"):format(slot.id, slot.offset) end
  table.sort(ids)
  return table.concat(ids, " ")
end

local function indexed()
  local db <close> = assert(sqlite.open(dir .. "/run-1/run.db"))
  return assert(db:query "SELECT count(*), sum(bytes) FROM rollout")[1]
end

-- Whatever becomes of the index, what is known of the run is what its segments hold.
function M.test_the_index_follows_the_segments()
  write { "a", "b", "c" }
  local whole = assert(fs.read(segment(0)))
  lu.assertEquals(indexed(), { 3, #whole })
  local expected = finished()
  local second = whole:find("\n", 1, true)
  local db_path = dir .. "/run-1/run.db"
  local stale = assert(fs.read(db_path))
  local cases = {
    deleted = function() assert(fs.remove(db_path)) end,
    ["not a database"] = function() assert(fs.write(db_path, ("x"):rep(5000))) end,
    ["of another version"] = function()
      local db <close> = assert(sqlite.open(db_path, { write = true }))
      assert(db:exec "PRAGMA user_version = 99")
    end,
    ["a row missing in the middle"] = function()
      local db <close> = assert(sqlite.open(db_path, { write = true }))
      assert(db:exec(("DELETE FROM rollout WHERE offset = %d"):format(second)))
    end,
    ["the last row missing"] = function()
      local db <close> = assert(sqlite.open(db_path, { write = true }))
      assert(db:exec "DELETE FROM rollout WHERE id = 'c'")
    end,
  }
  for name, damage in pairs(cases) do
    damage()
    lu.assertEquals(finished(), expected, name)
    lu.assertEquals(indexed(), { 3, #whole }, name)
  end
  assert(fs.write(segment(0), whole:sub(1, second)))
  lu.assertEquals(finished(), "a@0")
  assert(fs.write(segment(0), whole))
  assert(fs.write(db_path, stale))
  lu.assertEquals(finished(), expected)
end

-- However a run was left, and whoever looked at it: its index is one file, nothing beside it.
function M.test_an_index_is_one_file()
  local rows, check = require "agentbox.store.rows", require "agentbox.store.check".check
  local function files()
    local names = {}
    for _, entry in ipairs(assert(fs.list(dir .. "/run-1"))) do
      if entry.name:find "^run%.db" then names[#names + 1] = entry.name end
    end
    return names
  end
  write { "a", "b", "c" }
  lu.assertEquals(files(), { "run.db" })
  local r = rows.open(dir .. "/run-1")
  lu.assertEquals(r:each()().id, "a")
  lu.assertEquals(files(), { "run.db" })
  r:close()
  lu.assertEquals(assert(check(dir .. "/run-1")).problems, {})
  finished()
  lu.assertEquals(files(), { "run.db" })
  local reader <close> = assert(sqlite.open(dir .. "/run-1/run.db"))
  assert(reader:exec "BEGIN")
  assert(reader:query "SELECT count(*) FROM rollout")
  write { "d" }
  lu.assertEquals({ files(), indexed()[1] }, { { "run.db" }, 4 })
  lu.assertEquals(assert(reader:query "SELECT count(*) FROM rollout")[1][1], 3)
end

-- Its first rows come from what was written, not from what is read back: a line that is damaged meanwhile has its row.
function M.test_rows_that_wait_are_not_read_back()
  local s = assert(open())
  for _, id in ipairs { "a", "b", "c" } do assert(s:append(member(id))) end
  local whole = assert(fs.read(segment(0)))
  local file = assert(io.open(segment(0), "r+b"))
  file:write(("x"):rep(#whole))
  file:close()
  s:close()
  lu.assertEquals(indexed(), { 3, #whole })
end

function M.test_rows_are_found_by_id()
  local rows = require "agentbox.store.rows"
  write { "run-1-1", "run-1-10", "run-2", "%x" }
  local function find(prefix)
    local r, ids = rows.open(dir .. "/run-1"), {}
    for i, row in ipairs(r:find(prefix)) do ids[i] = row.id end
    r:close()
    return table.concat(ids, " ")
  end
  for _ = 1, 2 do
    lu.assertEquals(find "run-1-1", "run-1-1 run-1-10")
    lu.assertEquals(find "run-2", "run-2")
    lu.assertEquals(find "%", "%x")
    lu.assertEquals(find "nobody", "")
    if fs.stat(dir .. "/run-1/run.db") then assert(fs.remove(dir .. "/run-1/run.db")) end
  end
end

function M.test_a_run_of_one_has_no_index()
  write { "a" }
  lu.assertNil(fs.stat(dir .. "/run-1/run.db"))
  lu.assertEquals(finished(), "a@0")
end

function M.test_events_are_lines()
  do
    local s <close> = assert(open())
    lu.assertNil(fs.stat(s.run_dir .. "/events.jsonl"))
    assert(s:event("infrastructure", { id = "a", attempt = 0, class = "sandbox", bad = 0 / 0 }))
    assert(s:append(member "a"))
    assert(s:event "stop")
  end
  local lines = {}
  for line in io.lines(dir .. "/run-1/events.jsonl") do lines[#lines + 1] = assert(json.decode(line)) end
  lu.assertEquals({ lines[1].kind, lines[1].class, lines[2].kind, #lines }, { "infrastructure", "sandbox", "stop", 2 })
  lu.assertEquals(math.type(lines[1].t), "float")
  local s = assert(open())
  s:close()
  assert(s:event "late") -- its groups are delivered after its end
  assert(s:event "later")
  lu.assertStrMatches(assert(fs.read(dir .. "/run-1/events.jsonl")), '.*"late"[^\n]*\n[^\n]*"later"[^\n]*\n')
  assert(fs.remove(dir .. "/run-1", true))
  local ok, problem = s:event "too late"
  lu.assertEquals({ ok, problem.code }, { nil, "notfound" })
end

return M

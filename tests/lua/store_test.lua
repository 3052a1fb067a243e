local lu = require "luaunit"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local read = require "agentbox.store.read"
local store = require "agentbox.store"
local traj = require "agentbox.traj"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-store") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function sample(n, opts, with)
  opts = opts or {}
  opts.id = opts.id or "r1-" .. n
  return made.sample(opts, with):finish()
end

local function open(opts)
  return store.open(dir, opts or { run_id = "run-1" })
end

local function ids(path)
  local out = {}
  for t in traj.each(path) do out[#out + 1] = t.id end
  return out
end

local function names(path)
  local out = {}
  for i, entry in ipairs(assert(fs.list(path))) do out[i] = entry.name end
  return out
end

function M.test_layout()
  local s <close> = assert(open { run_id = "run-1", meta = { tasks = "tasks", concurrency = 4 } })
  local where = assert(s:append(sample(0)))
  lu.assertEquals(names(dir), { "run-1", "t-17_5f0c1a2b.json" })
  lu.assertEquals(names(dir .. "/run-1"), { "lock", "run.json", "trajectories-00000.jsonl" })
  lu.assertEquals(where.json, dir .. "/t-17_5f0c1a2b.json")
  lu.assertEquals({ where.segment, where.offset }, { 0, 0 })
  local run = json.decode(assert(fs.read(dir .. "/run-1/run.json")))
  lu.assertEquals({ run.schema, run.run, run.concurrency }, { "agentbox.run/1", "run-1", 4 })
end

function M.test_what_was_written_is_read_from_every_place()
  local t = sample(0, nil, { tokens = true })
  do
    local s <close> = assert(open())
    assert(s:append(t))
  end
  for _, path in ipairs { dir, dir .. "/", dir .. "/run-1", dir .. "/run-1/trajectories-00000.jsonl" } do
    local again = assert(traj.load(path))
    lu.assertEquals(json.encode(again.line), json.encode(t.line))
  end
  local native = assert(traj.load(dir .. "/t-17_5f0c1a2b.json"))
  lu.assertEquals({ native.task_id, native.reward, #native.messages }, { "t-17", 1.0, 5 })
end

function M.test_blobs_are_found_again()
  local ro = made.new()
  ro:reply(made.object("role", "assistant", "content", "ok"), { raw_response = "{\n}" })
  do
    local s <close> = assert(open())
    assert(s:append(ro:finish { artifacts = { ["a.bin"] = "\0\xff" } }))
  end
  local t = assert(traj.load(dir .. "/run-1"))
  lu.assertEquals(t:body(t.line.calls[1], "response"), "{\n}")
  lu.assertEquals(t:artifact "a.bin", "\0\xff")
  assert(fs.remove(dir .. "/run-1/blobs", true))
  local none, err = t:artifact "a.bin"
  lu.assertNil(none)
  lu.assertEquals(err.code, "notfound")
end

function M.test_a_run_goes_on_in_its_folder()
  for n = 0, 2 do
    local s <close> = assert(open())
    assert(s:append(sample(n)))
  end
  lu.assertEquals(ids(dir .. "/run-1"), { "r1-0", "r1-1", "r1-2" })
  lu.assertEquals(names(dir), { "run-1", "t-17_5f0c1a2b.json", "t-17_5f0c1a2b_2.json", "t-17_5f0c1a2b_3.json" })
end

function M.test_one_writer()
  local s <close> = assert(open())
  local other, err = open()
  lu.assertNil(other)
  lu.assertEquals(err.code, "busy")
  s:close()
  s:close()
  local third <close> = assert(open())
  lu.assertNotNil(third)
end

function M.test_a_closed_store_says_so()
  local s = assert(open())
  s:close()
  local ok, err = s:append(sample(0))
  lu.assertNil(ok)
  lu.assertEquals(err.code, "badarg")
end

local SEGMENT = "/run-1/trajectories-00000.jsonl"

local function write_two()
  local s <close> = assert(open())
  assert(s:append(sample(0)))
  assert(s:append(sample(1)))
  return assert(fs.read(dir .. SEGMENT))
end

-- However much of the last line is missing, the lines before it stand and writing goes on.
function M.test_a_torn_last_line_is_cut_at_every_length()
  local whole = write_two()
  local first = whole:find("\n", 1, true)
  for _, keep in ipairs { first + 1, first + 2, first + 100, #whole - 70, #whole - 2, #whole - 1 } do
    assert(fs.write(dir .. SEGMENT, whole:sub(1, keep)))
    lu.assertEquals(ids(dir .. SEGMENT), { "r1-0" })
    local s <close> = assert(open())
    lu.assertEquals(assert(fs.stat(dir .. SEGMENT)).size, first)
    assert(s:append(sample(2)))
    s:close()
    lu.assertEquals(ids(dir .. SEGMENT), { "r1-0", "r1-2" })
    lu.assertEquals(fs.read(dir .. SEGMENT .. ".torn"), whole:sub(first + 1, keep))
  end
end

function M.test_a_last_line_of_zeros_is_cut()
  local whole = write_two()
  assert(fs.write(dir .. SEGMENT, whole .. ("\0"):rep(4096)))
  assert(open()):close()
  lu.assertEquals(assert(fs.stat(dir .. SEGMENT)).size, #whole)
end

function M.test_a_first_line_that_was_torn_leaves_an_empty_file()
  local whole = write_two()
  assert(fs.write(dir .. SEGMENT, whole:sub(1, 50)))
  assert(open()):close()
  lu.assertEquals(assert(fs.stat(dir .. SEGMENT)).size, 0)
end

function M.test_a_damaged_line_is_reported_with_its_place()
  local whole = write_two()
  assert(fs.write(dir .. SEGMENT, (whole:gsub("Fixed", "Mixed", 1))))
  local t, err = traj.load(dir .. SEGMENT .. "#r1-0")
  lu.assertNil(t)
  lu.assertEquals(err.code, "parse")
  lu.assertStrContains(err.msg, "trajectories-00000.jsonl:1")
end

function M.test_lines_end_at_line_feeds_only()
  local odd = "a\u{85}b\u{2028}c\u{2029}d\ve\ff\rg"
  do
    local s <close> = assert(open())
    assert(s:append(sample(0, nil, { output = odd })))
    assert(s:append(sample(1)))
  end
  lu.assertEquals(ids(dir), { "r1-0", "r1-1" })
  lu.assertEquals(assert(traj.load(dir .. "#r1-0")).messages[4].content, odd)
end

function M.test_a_record_without_its_sum_is_refused()
  local whole = write_two()
  assert(fs.write(dir .. SEGMENT, (whole:gsub(',"sum":"[^"]*"}', "}"))))
  local t, err = traj.load(dir .. SEGMENT .. "#r1-0")
  lu.assertNil(t)
  lu.assertStrContains(err.msg, "a record without its sum")
end

function M.test_segments_rotate()
  local before = store.SEGMENT_BYTES
  store.SEGMENT_BYTES = 1
  local ok, problem = pcall(function()
    local s <close> = assert(open())
    for n = 0, 2 do assert(s:append(sample(n))) end
  end)
  store.SEGMENT_BYTES = before
  assert(ok, problem)
  lu.assertEquals(ids(dir .. "/run-1"), { "r1-0", "r1-1", "r1-2" })
  lu.assertNotNil(fs.stat(dir .. "/run-1/trajectories-00002.jsonl"))
end

local ODD_IDS = {
  "-rf", "../x", "/etc/passwd", ".", "..", "", "a b", "a\nb", "x\0y", "\xff\xfe", ("n"):rep(300), "задача", ".hidden", "a/b", "CON",
}

function M.test_names_of_odd_ids()
  local seen = {}
  for _, id in ipairs(ODD_IDS) do
    local name = store.safe_name(id)
    lu.assertTrue(#name > 0 and #name <= 100, id)
    lu.assertNil(name:find "[^%w._-]", id)
    lu.assertNil(name:find "^[.-]", id)
    lu.assertNil(seen[name], id)
    seen[name] = id
  end
  lu.assertEquals(store.safe_name "fix_fizzbuzz", "fix_fizzbuzz")
  lu.assertNotEquals(store.safe_name "a b", store.safe_name "a_b")
end

function M.test_odd_ids_stay_in_the_folder()
  do
    local s <close> = assert(open { run_id = "../escape" })
    for i, id in ipairs(ODD_IDS) do assert(s:append(sample(i, { task_id = id, run_id = "../escape" }))) end
  end
  local runs, documents = 0, 0
  for _, entry in ipairs(assert(fs.list(dir))) do
    if entry.type == "dir" then runs = runs + 1 else documents = documents + 1 end
  end
  lu.assertEquals({ runs, documents }, { 1, #ODD_IDS })
  lu.assertNil(fs.stat(dir .. "/../escape"))
  local n = 0
  for t in traj.each(dir) do
    n = n + 1
    if n ~= 10 then lu.assertEquals(t.task_id, ODD_IDS[n]) end
  end
  lu.assertEquals(n, #ODD_IDS)
end

function M.test_several_rollouts_need_a_name()
  write_two()
  local t, err = traj.load(dir)
  lu.assertNil(t)
  lu.assertEquals(err.code, "exists")
  lu.assertStrContains(err.msg, "2 trajectories")
  lu.assertEquals(assert(traj.load(dir .. "#r1-1")).id, "r1-1")
  t, err = traj.load(dir .. "#nobody")
  lu.assertNil(t)
  lu.assertEquals(err.code, "notfound")
end

function M.test_what_holds_no_trajectory()
  for _, path in ipairs { dir, dir .. "/nothing" } do
    local t, err = traj.load(path)
    lu.assertNil(t)
    lu.assertEquals(err.code, "notfound")
  end
  assert(fs.write(dir .. "/x.json", "{}"))
  local t, err = traj.load(dir .. "/x.json")
  lu.assertNil(t)
  lu.assertEquals(err.code, "parse")
end

function M.test_agentbox_lines_and_folders_are_read()
  local agentbox = require "agentbox.formats.agentbox"
  local lines = {}
  for n = 0, 2 do
    local text = json.encode((agentbox.convert(sample(n, { run_id = "run" .. n }))))
    lines[n + 1] = text .. "\n"
    assert(fs.mkdir(dir .. "/old", true))
    assert(fs.write(("%s/old/%d.json"):format(dir, n), text))
  end
  assert(fs.write(dir .. "/dataset.jsonl", table.concat(lines)))
  lu.assertEquals(ids(dir .. "/dataset.jsonl"), { "run0", "run1", "run2" })
  lu.assertEquals(ids(dir .. "/old"), { "run0", "run1", "run2" })
end

function M.test_checking_a_run()
  local check = require "agentbox.store.check".check
  write_two()
  local report = assert(check(dir))
  lu.assertEquals(report.trajectories, 2)
  lu.assertEquals(report.problems, {})
  local ro = made.new { id = "r1-5" }
  ro:reply(made.object("role", "assistant", "content", "ok"), { raw_response = "two\nlines" })
  do
    local s <close> = assert(open())
    assert(s:append(ro:finish { artifacts = { a = "x" } }))
    assert(s:append(sample(0)))
  end
  assert(fs.remove(dir .. "/run-1/blobs", true))
  report = assert(check(dir))
  local found = {}
  for i, problem in ipairs(report.problems) do found[i] = problem.id .. " " .. problem.where end
  lu.assertEquals(found, { "r1-5 calls[0].response", "r1-5 artifact a", "r1-0 id" })
  local whole = assert(fs.read(dir .. SEGMENT))
  assert(fs.write(dir .. SEGMENT, (whole:gsub("Fixed", "Mixed", 1))))
  report = assert(check(dir))
  lu.assertEquals(report.trajectories, 3) -- those behind the damage
  lu.assertStrContains(report.problems[1].msg, "recorded sum")
  local none, err = check(dir .. "/nowhere")
  lu.assertNil(none)
  lu.assertEquals(err.code, "notfound")
end

function M.test_response_ids_across_a_run()
  local s <close> = assert(open())
  for _, id in ipairs { "r1-0", "r1-1" } do
    local ro = made.new { id = id }
    ro.id = "same"
    ro:reply(made.object("role", "assistant", "content", "ok"))
    assert(s:append(ro:finish()))
  end
  local report = assert(require "agentbox.store.check".check(dir))
  lu.assertEquals({ #report.problems, report.repeated_ids.count }, { 0, 1 })
  lu.assertStrContains(report.repeated_ids.first, "r1-1: calls[0]: chatcmpl-same-")
end

function M.test_a_pipe_in_the_place_of_a_file_stops_nobody()
  write_two()
  local run_dir = dir .. "/run-1"
  local host <close> = assert(require "agentbox.sandbox".create { backend = "none" })
  assert(host:exec { "mkfifo", run_dir .. "/trajectories-00001.jsonl", dir .. "/x.jsonl" })
  for _, path in ipairs { dir, run_dir, dir .. "/x.jsonl" } do
    local ok, problem = read.visit(path, function() return true end)
    lu.assertNil(ok)
    lu.assertStrContains(problem.msg, "is a fifo")
  end
  local ok, again, problem = pcall(store.open, dir, { run_id = "run-1" })
  lu.assertStrContains(tostring(ok and problem or again), "is a fifo")
end

function M.test_the_reader_stops_when_asked()
  write_two()
  local n = 0
  assert(read.visit(dir, function()
    n = n + 1
    return false
  end))
  lu.assertEquals(n, 1)
end

function M.test_a_folder_that_cannot_be_made()
  assert(fs.write(dir .. "/file", ""))
  local s, err = store.open(dir .. "/file/out", { run_id = "r" })
  lu.assertNil(s)
  lu.assertStrContains(err.msg, "cannot record into")
end

function M.test_many_at_once_keep_their_lines_apart()
  local async = require "agentbox.async"
  do
    local s <close> = assert(open())
    local list = {}
    for n = 1, 20 do list[n] = sample(n) end
    async.each(list, function(t) assert(s:append(t)) end, { limit = 20 })
  end
  local found = ids(dir .. "/run-1")
  lu.assertEquals(#found, 20)
  table.sort(found)
  local expected = {}
  for n = 1, 20 do expected[n] = "r1-" .. n end
  table.sort(expected)
  lu.assertEquals(found, expected)
end

return M

--- Exports that a full or failing disk, or Ctrl-C, stops: nothing half written stays, and no file has its name before it is
--- on the disk.
local lu = require "luaunit"
local async = require "agentbox.async"
local export = require "agentbox.export"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local parts = require "agentbox.export.parts"
local store = require "agentbox.store"
local here = arg[0]:match "^(.*)/[^/]*$"
local made = dofile(here .. "/../support/rollouts.lua")

local binary = assert(fs.realpath "/proc/self/exe")

local M = {}
local dir

function M.setUp()
  dir = assert(fs.tmpdir "agentbox-export-faults")
  local s <close> = assert(store.open(dir .. "/run", { run_id = "run-1", agentbox_json = false }))
  for i = 1, 5 do assert(s:append(made.sample({ id = "r" .. i }, { tokens = true }):finish())) end
  assert(fs.mkdir(dir .. "/to"))
end

function M.tearDown() assert(fs.remove(dir, true)) end

local function names()
  local list = {}
  for i, entry in ipairs(assert(fs.list(dir .. "/to"))) do list[i] = entry.name end
  return list
end

-- Exports to `out` in an engine of its own with a failure point armed; gives its exit status and what it said.
local function run(fault, out)
  local _, _, status = os.execute(("AGENTBOX_FAULTS='%s' '%s' export -q -f agentbox -o '%s/to%s' '%s/run' >'%s/stdout' 2>'%s/stderr'")
    :format(fault, binary, dir, out, dir, dir, dir))
  return status, assert(fs.read(dir .. "/stderr"))
end

-- Before anything has its name all of it is on the disk: whatever fails until then leaves nothing.
for what, fault in pairs { a_full_disk = "fs.write:1:28", a_later_full_disk = "fs.write:4:28", a_failed_sync = "file.fdatasync:1:5",
  a_failed_rename = "fs.rename:1:5" } do
  M["test_" .. what .. "_leaves_no_documents"] = function()
    local status, said = run(fault, "/")
    lu.assertNotEquals(status, 0)
    lu.assertStrContains(said, what:find "disk" and "No space left on device" or "Input/output error")
    lu.assertEquals(names(), {})
  end
end

for what, fault in pairs { a_full_disk = "fs.write:1:28", a_failed_sync = "file.fdatasync:1:5", a_failed_rename = "fs.rename:1:5" } do
  M["test_" .. what .. "_leaves_the_lines_that_were_there"] = function()
    assert(fs.write(dir .. "/to/x.jsonl", "before\n"))
    local status, said = run(fault, "/x.jsonl")
    lu.assertNotEquals(status, 0)
    lu.assertStrContains(said, "x.jsonl")
    lu.assertEquals(names(), { "x.jsonl" })
    lu.assertEquals(fs.read(dir .. "/to/x.jsonl"), "before\n")
  end
end

-- Several are synced at once: of one that fails the name is told.
function M.test_a_document_that_cannot_be_synced_is_named()
  local status, said = run("file.fdatasync:3:5", "/")
  lu.assertNotEquals(status, 0)
  lu.assertStrMatches(said, ".*/to/[%w_-]+%.json: sync: .*Input/output error.*")
  lu.assertEquals(names(), {})
end

-- Those that have their names are whole; the others are gone.
function M.test_a_rename_that_fails_in_the_middle()
  lu.assertNotEquals(run("fs.rename:3:5", "/"), 0)
  lu.assertEquals(#names(), 2)
  for _, name in ipairs(names()) do
    lu.assertStrContains(name, ".json")
    lu.assertEquals(assert(json.decode(fs.read(dir .. "/to/" .. name))).final_status, "success")
  end
end

function M.test_a_folder_that_cannot_be_synced_is_told()
  local status, said = run("fs.syncdir:1:5", "/")
  lu.assertNotEquals(status, 0)
  lu.assertStrContains(said, "sync")
  lu.assertEquals(#names(), 5)
end

-- The engine's own way to end a rollout or a command: a cancel where it waits. A document that had its name by then is whole.
for what, out in pairs { documents = "/to/", lines = "/to/x.jsonl" } do
  M["test_" .. what .. "_that_are_stopped_leave_nothing_in_the_making"] = function()
    local converting = fiber.spawn(function() return export.convert { input = dir .. "/run", format = "agentbox", out = dir .. out } end)
    while #names() == 0 and converting:status() ~= "done" do fiber.yield() end
    lu.assertNotEquals(names(), {})
    converting:cancel()
    converting:join()
    for _, name in ipairs(names()) do
      lu.assertNotStrContains(name, ".part-")
      lu.assertEquals(assert(json.decode(fs.read(dir .. "/to/" .. name))).final_status, "success")
    end
  end
end

-- Whoever writes the same name at once writes beside it, and not into our file.
function M.test_two_at_once_into_one_name()
  local out = { input = dir .. "/run", format = "jsonl", out = dir .. "/to/x.jsonl" }
  local results = {}
  async.each({ 1, 2, 3 }, function(i) results[i] = assert(export.convert(out)).written end)
  lu.assertEquals(results, { 5, 5, 5 })
  lu.assertEquals(names(), { "x.jsonl" })
  lu.assertEquals(select(2, assert(fs.read(dir .. "/to/x.jsonl")):gsub("\n", "")), 5)
end

-- Killed while it writes, before anything has its name and between two names: the next export to the place takes away what
-- is left, and nothing that a living one, or somebody else, has there.
for what, fault in pairs { a_write = "fs.write:3:kill", a_sync = "file.fdatasync:1:kill", a_name = "fs.rename:3:kill" } do
  M["test_the_next_export_takes_away_what_one_killed_at_" .. what .. "_left"] = function()
    for _, name in ipairs { "mine.json.part-x", "notes.txt.part-0123abcd", "x.jsonl.part-0123abcd" } do
      assert(fs.write(dir .. "/to/" .. name, ""))
    end
    assert(fs.mkdir(dir .. "/to/y.json.part-0123abcd"))
    run(fault, "/")
    lu.assertTrue(#names() > 4)
    lu.assertEquals(run("", "/"), 0)
    local documents, others = 0, {}
    for _, name in ipairs(names()) do
      if name:find "%.json$" then documents = documents + 1 else others[#others + 1] = name end
    end
    lu.assertEquals(documents, 5)
    lu.assertEquals(others, { "mine.json.part-x", "notes.txt.part-0123abcd", "x.jsonl.part-0123abcd", "y.json.part-0123abcd" })
  end
end

function M.test_lines_that_one_killed_left_are_taken_away()
  assert(fs.write(dir .. "/to/other.jsonl.part-0123abcd", ""))
  run("file.fdatasync:1:kill", "/x.jsonl")
  lu.assertEquals(#names(), 2)
  lu.assertEquals(run("", "/x.jsonl"), 0)
  lu.assertEquals(names(), { "other.jsonl.part-0123abcd", "x.jsonl" })
end

-- One that lives has closed most of its files by the time that they get their names.
function M.test_what_a_living_export_makes_stays()
  local living <close> = parts.new()
  for i = 1, 66 do assert(living:open(("%s/to/%d.json"):format(dir, i))) end
  lu.assertEquals(run("", "/"), 0)
  lu.assertEquals(#names(), 71)
  assert(living:settle())
  lu.assertEquals(#names(), 71)
  for _, name in ipairs(names()) do lu.assertNotStrContains(name, ".part-") end
end

-- A folder is not listed at one moment: of who begins meanwhile, a later file may be seen and the locked one not.
function M.test_who_begins_while_the_folder_is_listed_stays()
  assert(fs.mkdir(dir .. "/to", true))
  local first, second = dir .. "/to/a.json.part-0123abcd", dir .. "/to/b.json.part-0123abcd"
  local lock
  assert(fs.write(second, ""))
  local function fits()
    lock = lock or assert(fs.lock(first))
    return true
  end
  parts.sweep(dir .. "/to", fits)
  lu.assertEquals(#names(), 2)
  lock:close()
  parts.sweep(dir .. "/to", fits)
  lu.assertEquals(#names(), 0)
end

-- More documents than this process may have files open.
function M.test_few_descriptors_are_enough()
  local s <close> = assert(store.open(dir .. "/many", { run_id = "run-2", agentbox_json = false }))
  for i = 1, 60 do assert(s:append(made.sample { id = ("%08d"):format(i) }:finish())) end
  local _, _, status = os.execute(("ulimit -n 48; '%s' export -q -f agentbox -o '%s/to/' '%s/many' >/dev/null 2>'%s/stderr'")
    :format(binary, dir, dir, dir))
  lu.assertEquals({ status, assert(fs.read(dir .. "/stderr")) }, { 0, "" })
  lu.assertEquals(#names(), 60)
end

return M

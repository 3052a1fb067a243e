local async = require "agentbox.async"
local fs = require "agentbox.fs"
local lu = require "luaunit"

local M = {}

function M:setUp()
  self.dir = assert(fs.tmpdir "agentbox-fs-")
end

function M:tearDown()
  assert(fs.remove(self.dir, true))
end

function M:test_write_replaces_in_one_step_and_leaves_nothing_else()
  local path = self.dir .. "/f"
  assert(fs.write(path, "one"))
  assert(fs.write(path, "two\0\255", { mode = 384 }))
  lu.assertEquals(fs.read(path), "two\0\255")
  lu.assertEquals(fs.stat(path).mode, 384)
  lu.assertEquals(#fs.list(self.dir), 1)
  local _, e = fs.write(path, "x", { exclusive = true })
  lu.assertEquals(e.code, "exists")
  _, e = fs.write(self.dir .. "/no/f", "x")
  lu.assertEquals(e.code, "notfound")
  _, e = fs.write(self.dir, "x")
  lu.assertEquals(e.code, "invalid")
  lu.assertErrorMsgContains("unknown option 'modes'", fs.write, path, "x", { modes = 1 })
  lu.assertErrorMsgContains("option 'mode': integer expected, got string", fs.write, path, "x", { mode = "600" })
end

function M:test_read_has_a_cap_and_wants_a_regular_file()
  local path = self.dir .. "/f"
  local big = ("x"):rep(3 << 20)
  assert(fs.write(path, big, { sync = false }))
  lu.assertTrue(fs.read(path) == big)
  lu.assertTrue(fs.read(path, #big) == big)
  lu.assertEquals(select(2, fs.read(path, #big - 1)).code, "toobig")
  lu.assertEquals(select(2, fs.read "/dev/zero").code, "invalid")
  assert(os.execute(("mkfifo '%s/pipe'"):format(self.dir)))
  lu.assertEquals(select(2, fs.read(self.dir .. "/pipe")).code, "invalid")
  lu.assertTrue(#fs.read "/proc/self/status" > 0)
  lu.assertErrorMsgContains("zero byte", fs.read, "a\0b")
  lu.assertErrorMsgContains("empty", fs.read, "")
end

function M:test_others_run_while_a_big_file_is_read()
  local path, turns, done = self.dir .. "/f", 0, false
  assert(fs.write(path, ("x"):rep(8 << 20), { sync = false }))
  async.scope(function(s)
    s:spawn(function()
      while not done do
        turns = turns + 1
        async.yield()
      end
    end)
    assert(fs.read(path))
    done = true
  end)
  lu.assertTrue(turns > 0)
end

function M:test_directories()
  lu.assertTrue(fs.mkdir(self.dir .. "/a/b/c", true))
  lu.assertTrue(fs.mkdir(self.dir .. "/a/b/c", true))
  lu.assertEquals(select(2, fs.mkdir(self.dir .. "/a")).code, "exists")
  assert(fs.write(self.dir .. "/a/z", ""))
  assert(fs.write(self.dir .. "/a/B", ""))
  assert(fs.symlink("/etc", self.dir .. "/a/link"))
  lu.assertEquals(fs.list(self.dir .. "/a"), {
    { name = "B", type = "file" }, { name = "b", type = "dir" }, { name = "link", type = "link" },
    { name = "z", type = "file" },
  })
  local seen = {}
  assert(fs.walk(self.dir, function(path) seen[#seen + 1] = path:sub(#self.dir + 2) end))
  lu.assertEquals(seen, { "a", "a/B", "a/b", "a/b/c", "a/link", "a/z" })
  lu.assertEquals(fs.lstat(self.dir .. "/a/link").type, "link")
  lu.assertEquals(fs.stat(self.dir .. "/a/link").type, "dir")
  lu.assertEquals(fs.readlink(self.dir .. "/a/link"), "/etc")
  lu.assertEquals(fs.realpath(self.dir .. "/a/link"), "/etc")
  lu.assertTrue(fs.remove(self.dir .. "/a", true))
  lu.assertTrue(fs.exists "/etc/passwd") -- the link was removed, not what it points to
  lu.assertTrue(fs.remove(self.dir .. "/a", true))
  lu.assertEquals(select(2, fs.remove(self.dir .. "/a")).code, "notfound")
end

function M:test_append()
  local path = self.dir .. "/log"
  local f <close> = assert(fs.append_open(path))
  assert(f:write "one\n")
  assert(f:write "two\n")
  assert(f:sync())
  lu.assertEquals(f:size(), 8)
  assert(f:truncate(4))
  assert(f:write "three\n")
  lu.assertEquals(fs.read(path), "one\nthree\n")
  f:close()
  f:close()
  lu.assertErrorMsgContains("closed", f.write, f, "x")
end

-- Those that go to the disk together are closed, whatever becomes of them.
function M:test_files_that_are_finished()
  local function open(names)
    local files = {}
    for i, name in ipairs(names) do files[i] = assert(fs.append_open(name)) end
    return files
  end
  local a, b = self.dir .. "/a", self.dir .. "/b"
  local good, bad = open { a, b }, open { a, "/dev/null", b } -- which cannot be synced
  assert(good[1]:write "one")
  assert(good[2]:write "two")
  lu.assertTrue(fs.finish(good))
  lu.assertTrue(fs.finish {})
  lu.assertEquals({ fs.read(a), fs.read(b) }, { "one", "two" })
  local ok, e, at = fs.finish(bad)
  lu.assertEquals({ ok, e.op, at }, { nil, "fs.finish", 2 })
  for _, file in ipairs { good[1], good[2], bad[1], bad[2], bad[3] } do lu.assertErrorMsgContains("closed", file.sync, file) end
  local rest <close> = assert(fs.append_open(a))
  lu.assertErrorMsgContains("closed", fs.finish, { rest, good[1] })
  assert(rest:sync())
end

function M:test_lock()
  local path = self.dir .. "/lock"
  local mine = assert(fs.lock(path))
  local theirs, e = fs.lock(path)
  lu.assertNil(theirs)
  lu.assertEquals(e.code, "busy")
  mine:close()
  assert(fs.lock(path)):close()
  assert(fs.lock(path, false, true)):close()
  theirs, e = fs.lock(path .. "2", false, true)
  lu.assertNil(theirs)
  lu.assertEquals(e.code, "notfound")
  lu.assertFalse(fs.exists(path .. "2"))
end

-- Who waits for nothing may open a file just before its holder removes it.
function M:test_a_file_that_is_gone_cannot_be_locked()
  local path = self.dir .. "/lock"
  local file <close> = assert(io.open(path, "w")) -- luacheck: ignore 211
  os.remove(path)
  local again
  for _, entry in ipairs(assert(fs.list "/proc/self/fd")) do
    local name = "/proc/self/fd/" .. entry.name
    if fs.readlink(name) == path .. " (deleted)" then again = name end
  end
  local lock, e = fs.lock(assert(again))
  lu.assertNil(lock)
  lu.assertEquals(e.code, "busy")
end

function M.test_a_full_disk_is_full()
  local _, e = fs.write("/dev/full/x", "x")
  lu.assertNotNil(e)
  local f <close> = assert(fs.append_open "/dev/full")
  local ok
  ok, e = f:write "x"
  lu.assertNil(ok)
  lu.assertEquals(e.code, "full")
end

return M

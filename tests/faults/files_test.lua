--- Files into and out of sandboxes (faults B52, B56, B64, B65), on every backend.
local fs = require "agentbox.fs"
local lu = require "luaunit"
local rand = require "agentbox.sys.rand"

local live = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/live.lua")

local M = { setUp = live.need_native }

local function each_backend(check)
  for _, backend in ipairs(live.BACKENDS) do
    local sb <close> = live.sandbox(backend)
    check(sb, backend)
  end
end

function M.test_b52_a_name_is_only_a_name()
  local mark = "agentbox-b52-" .. rand.uuid4() -- without a slash: the commands are names of one component
  local names = {
    ("$(touch %s);a b"):format(mark), ("`touch %s`"):format(mark), "a\nb", "-rf", "--", "*", "~", "a'b\"c\\d", "\xff\xfe",
    "name with\ttab", "%s%n", (" "):rep(8), ("x"):rep(255),
  }
  each_backend(function(sb)
    for _, name in ipairs(names) do
      assert(sb:write("d/" .. name, name))
      lu.assertEquals(sb:read("d/" .. name), name)
    end
    lu.assertEquals(#assert(sb:list "d"), #names)
    for _, entry in ipairs(assert(sb:list "d")) do lu.assertEquals(sb:read("d/" .. entry.name), entry.name) end
    -- Neither here nor where any command would have been run.
    for _, place in ipairs { "", "/", "/tmp/" } do lu.assertNil((fs.stat(place .. mark))) end
    local look = 'for at in "" d/ / /tmp/; do test ! -e "$at$0" || echo "$at$0"; done'
    lu.assertEquals(assert(sb:exec { "sh", "-c", look, mark }).stdout, "")
    local _, problem = sb:write(("x"):rep(256), "")
    lu.assertNotNil(problem, "a name that is too long is an error, not another name")
  end)
end

function M.test_b52_a_tree_taken_out_stays_where_it_is_put()
  local dir = assert(fs.tmpdir "agentbox-b52-")
  local name = dir:match "[^/]*$"
  each_backend(function(sb, backend)
    local out = dir .. "/" .. backend
    assert(fs.mkdir(out))
    assert(sb:exec(([[
      mkdir -p t/a/b && cd t && echo kept > a/b/f
      ln -s ../../../../%s a/up; ln -s / root; ln -s a/b loop; ln -s ../loop2 loop2; ln -s self self
      ln -s %s/escape target; mkfifo fifo]]):format(name, dir)))
    local counts = assert(sb:get("t", out))
    lu.assertEquals({ counts.files, counts.links, counts.skipped }, { 1, 6, 1 })
    lu.assertEquals(fs.read(out .. "/a/b/f", 100), "kept\n")
    -- Once more over what is there now: what a link points at is not written through.
    assert(sb:exec "rm t/target && echo escaped > t/target")
    sb:get("t", out)
    lu.assertNil((fs.stat(dir .. "/escape")))
  end)
  for _, entry in ipairs(assert(fs.list(dir))) do
    lu.assertTrue(entry.name == "native" or entry.name == "none", entry.name)
  end
  fs.remove(dir, true)
end

-- The umask is the process's: a program of its own tries it.
local UNDER_UMASK = [[
local ab = require "agentbox"
for _, backend in ipairs { "native", "none" } do
  local sb <close> = assert(ab.sandbox.create { backend = backend })
  assert(sb:write("d/run.sh", "#!/bin/sh\n", { mode = 493 }))
  assert(sb:write("plain", ""))
  assert(sb:write("secret", "", { mode = 384 }))
  assert(sb:mkdir("e"))
  local ok, problem = sb:write("run.sh", "", { mode = 493, owner = 1000 })
  io.write(backend, " ", assert(sb:exec "stat -c %a d/run.sh plain secret d e | tr '\\n' ' '; umask").stdout)
  io.write(ok and assert(sb:exec "stat -c '%a %u' run.sh").stdout or problem.code .. "\n")
end
]]

function M.test_b56_mode_and_owner_are_what_was_asked_for()
  local host <close> = live.sandbox "none"
  local several
  do
    local sb <close> = live.sandbox "native"
    several = sb._raw:user_count() > 1
  end
  assert(host:write("s.lua", UNDER_UMASK))
  local program = assert(fs.readlink "/proc/self/exe")
  for _, mask in ipairs { "077", "000", "022" } do
    local out = assert(host:exec(("umask %s; exec '%s' script s.lua"):format(mask, program)))
    lu.assertEquals(out.exit_code, 0, out.stderr)
    lu.assertStrContains(out.stdout, "native 755 644 600 755 755 0022\n")
    lu.assertStrContains(out.stdout, "none 755 644 600 755 755 ")
    local owned = {}
    for line in out.stdout:gmatch "[^\n]+" do
      if not line:find "^n" then owned[#owned + 1] = line end
    end
    lu.assertEquals(owned, { several and "755 1000" or "unsupported", "unsupported" }, mask)
  end
end

function M.test_b64_folders_are_made_and_every_transfer_is_checked()
  each_backend(function(sb, backend)
    assert(sb:write("a/b/c/d.txt", "x"))
    lu.assertEquals(assert(sb:exec "cat a/b/c/d.txt").stdout, "x")
    assert(sb:write("/deep/er/d.txt", "x"))
    lu.assertEquals(sb:read "/deep/er/d.txt", "x")
    local _, problem = sb:write("a/b/c/d.txt/e", "x")
    lu.assertNotNil(problem)
    _, problem = sb:put("/no/such/folder", "p")
    lu.assertEquals(problem.code, "notfound")
    _, problem = sb:get("no/such", "/tmp")
    lu.assertEquals(problem.code, "notfound")
    if backend == "none" then return end
    -- What no command would see is not said to be written, and not said to be missing.
    for _, path in ipairs { "/proc/sys/kernel/x", "/dev/shm/x", "/dev/x", "/tmp/../dev/x", "//proc//version" } do
      local ok
      ok, problem = sb:write(path, "x")
      lu.assertEquals({ ok, problem and problem.code }, { nil, "denied" }, path)
      lu.assertEquals(select(2, sb:read(path)).code, "denied", path)
    end
    for _, path in ipairs { "/devices/x", "/srv/proc/x", "/sys/x", "/usr/x", "/run/x" } do
      local ok
      ok, problem = sb:write(path, "x")
      if ok then lu.assertEquals(assert(sb:exec { "cat", path }).stdout, "x", path) end
      lu.assertTrue(ok or problem.code == "denied", path)
    end
    lu.assertErrorMsgContains("/dev", live.sandbox, "native", { workspace = "/dev/shm/w" })
  end)
end

function M.test_b65_what_is_written_is_there_for_the_next_command()
  each_backend(function(sb)
    for i = 1, 500 do
      local path, bytes = "f" .. i % 50, ("%d:%s"):format(i, ("x"):rep(i))
      assert(sb:write(path, bytes))
      lu.assertEquals(assert(sb:exec { "cat", path }).stdout, bytes)
    end
    for i = 1, 200 do
      assert(sb:exec(("echo %d > g"):format(i)))
      lu.assertEquals(sb:read "g", i .. "\n")
    end
  end)
end

return M

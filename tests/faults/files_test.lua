--- Files into and out of sandboxes (faults B52, B55, B56, B59, B61, B62, B64, B65), on every backend.
local fs = require "agentbox.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local lu = require "luaunit"
local rand = require "agentbox.sys.rand"
local sandbox = require "agentbox.sandbox"
local test = require "agentbox.test"
local tool = require "agentbox.tool"

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
  lu.assertEquals(#assert(fs.list(dir)), #live.BACKENDS, "nothing but a folder for each backend")
  fs.remove(dir, true)
end

-- Every name that a file may have, but for what is told apart by a slash.
local NAMES = { "\u{1F923}.txt", "a\nb", "-rf", "x y", "\xff", ("n"):rep(255), "..x", "a\\b", "\27[31m" }

function M.test_b59_names_are_bytes_on_the_way_in_and_out()
  local dir = assert(fs.tmpdir "agentbox-b59-")
  assert(fs.mkdir(dir .. "/in"))
  for i, name in ipairs(NAMES) do
    local file <close> = assert(io.open(dir .. "/in/" .. name, "wb")) -- fs.write would need room for a temporary name
    file:write("bytes ", i)
  end
  each_backend(function(sb, backend)
    local out = dir .. "/" .. backend
    assert(fs.mkdir(out))
    lu.assertEquals(assert(sb:put(dir .. "/in", "t")).files, #NAMES)
    lu.assertEquals(assert(sb:get("t", out)).files, #NAMES)
    for i, name in ipairs(NAMES) do
      lu.assertEquals(fs.read(out .. "/" .. name, 100), "bytes " .. i, ("%q"):format(name))
      lu.assertEquals(sb:read("t/" .. name), "bytes " .. i)
    end
  end)
  fs.remove(dir, true)
  local task = { task_id = "t", description = "d", verifier = { command = "true" }, artifacts = { NAMES[1], NAMES[2], NAMES[3] } }
  local t = live.run({ live.sh "printf 1 > '\u{1F923}.txt'; printf 2 > 'a\nb'; printf 3 > ./-rf", "done" }, { task = task })
  for i = 1, 3 do lu.assertEquals(t:artifact(NAMES[i]), tostring(i)) end
end

function M.test_b61_an_artifact_is_the_bytes_that_were_there()
  local command = "printf 'diff --git a b\\n+x\\n' > p; printf 'no newline' > q; printf '\\n\\n' > r; printf '\\377\\000\\n' > s; sha256sum p q r s"
  local task = { task_id = "t", description = "d", verifier = { command = "true" }, artifacts = { "p", "q", "r", "s" } }
  local t = live.run({ live.sh(command), "the answer\n" }, { task = task })
  local sums = {}
  for sum, name in t.messages[4].content:gmatch "(%x+)  (%a)\n" do sums[name] = sum end
  for _, name in ipairs(task.artifacts) do lu.assertEquals(hash.sha256(t:artifact(name)), sums[name], name) end
  lu.assertEquals(t:artifact "p", "diff --git a b\n+x\n")
  lu.assertEquals(t.messages[5].content, "the answer\n")
end

function M.test_b62_links_stay_what_they_are_and_what_is_no_file_is_left_out()
  local dir = assert(fs.tmpdir "agentbox-b62-")
  local host <close> = live.sandbox "none"
  assert(host:exec(([[mkdir -p '%s/in/d' && cd '%s/in' && echo f > d/f && ln -s d/f relative && ln -s /etc/passwd absolute &&
    ln -s nowhere dangling && ln -s loop loop && mkfifo fifo && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")']])
    :format(dir, dir)))
  each_backend(function(sb)
    local counts = assert(sb:put(dir .. "/in", "t"))
    lu.assertEquals({ counts.files, counts.links, counts.skipped }, { 1, 4, 2 })
    local out = assert(sb:exec "cd t; cat relative; for l in absolute dangling loop; do readlink $l; done; ls | wc -l")
    lu.assertEquals(out.stdout:gsub(" ", ""), "f\n/etc/passwd\nnowhere\nloop\n5\n")
  end)
  fs.remove(dir, true)
end

-- Attributes that users set, and holes; none that gives a right, and none by which an overlay marks its files.
local ATTRIBUTES = [[
import os, sys
d, what = sys.argv[1], sys.argv[2]
if what == "set":
    os.makedirs(d + "/in/sub"); open(d + "/in/f", "w").write("x"); os.chmod(d + "/in/f", 0o444)
    with open(d + "/in/sparse", "wb") as f: f.write(b"head"); f.seek(30 << 20); f.write(b"tail"); f.truncate(40 << 20)
    try:
        os.chmod(d + "/in/f", 0o644)
        os.setxattr(d + "/in/f", "user.note", bytes(range(256))); os.setxattr(d + "/in/f", "user.empty", b"")
        os.chmod(d + "/in/f", 0o444)
        os.setxattr(d + "/in/sub", "user.dir", b"of a folder"); os.setxattr(d + "/in/sparse", "user.overlay.x", b"no")
    except OSError: print("none")
else:
    for n in ("f", "sub", "sparse"): print(n, sorted((a, os.getxattr(d + "/" + n, a)) for a in os.listxattr(d + "/" + n) if a[:5] == "user."))
    s = os.stat(d + "/sparse"); b = open(d + "/sparse", "rb").read()
    print(s.st_size, s.st_blocks < 2000, b[:4], b[30 << 20:(30 << 20) + 4], len(b.strip(b"\0headtil")))
]]

function M.test_attributes_and_holes_come_along()
  local dir = assert(fs.tmpdir "agentbox-attributes-")
  local host <close> = live.sandbox "none"
  local function python(...) return assert(host:exec { "python3", "-c", ATTRIBUTES, ... }) end
  local set = python(dir, "set")
  lu.assertEquals(set.stderr, "")
  if set.stdout ~= "" then test.skip "the file system of temporary files keeps no attributes" end
  each_backend(function(sb, backend)
    local out = dir .. "/" .. backend
    assert(fs.mkdir(out))
    assert(sb:put(dir .. "/in", "t"))
    local twin <close> = live.sandbox(backend)
    if backend ~= "none" then assert(sb:copy_tree("t", twin, "t")) end
    assert((backend == "none" and sb or twin):get("t", out))
    local told = python(out, "look")
    local kept = { ("f [('user.empty', b''), ('user.note', %s)]"):format(python(dir .. "/in", "look").stdout:match "user.note', (b.-)%)%]"),
      "sub [('user.dir', b'of a folder')]", "sparse []", "41943040 True b'head' b'tail' 0", "" }
    -- A file system inside that keeps none (tmpfs before Linux 6.6) loses them, and nothing else.
    local lost = { "f []", "sub []", "sparse []", kept[4], "" }
    local wanted = told.stdout:find("user.", 1, true) and kept or lost
    lu.assertEquals(told.stdout, table.concat(wanted, "\n"), backend .. told.stderr)
    if backend == "docker" or backend == "none" then lu.assertEquals(wanted, kept, backend) end
    lu.assertEquals(select(2, sb:put(dir .. "/in", "u", { max_bytes = 200 })).code, "toobig", "attributes count")
  end)
  fs.remove(dir, true)
end

function M.test_b55_tools_for_files_are_the_agents_user_as_its_commands_are()
  for _, backend in ipairs(live.BACKENDS) do
    local sb <close> = sandbox.create { backend = backend, user = 1000, image = live.image_of(backend) }
    if sb then -- else there is root only
      local function root(command) return assert(sb:exec(command, { user = 0 })).stdout end
      root "echo flag > flag; chmod 400 flag; chmod 777 ."
      local ctx = { sandbox = sb, workspace = sb.workspace, user = 1000, time_left = function() return 30 end }
      local function use(name, args)
        local call = { id = "c", type = "function", ["function"] = { name = name, arguments = json.encode(args) } }
        return assert(tool.select {}):run(ctx, { call }, 60)[1].text
      end
      lu.assertStrContains(use("read_file", { path = "flag" }), "permission denied", backend)
      lu.assertStrContains(use("edit_file", { path = "flag", old_string = "flag", new_string = "x" }), "permission denied")
      lu.assertStrContains(use("run_command", { command = "cat flag" }), "exit_code=1")
      lu.assertStrContains(use("write_file", { path = "mine", content = "x" }), "Wrote")
      lu.assertEquals(root "stat -c %u mine; cat flag", "1000\nflag\n", backend)
    end
  end
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
  each_backend(function(sb)
    local ok, problem = sb:write("owned.sh", "", { mode = 493, owner = 1000 })
    if not ok then return lu.assertEquals(problem.code, "unsupported") end -- no other user there
    lu.assertEquals(assert(sb:exec "stat -c '%a %u' owned.sh").stdout, "755 1000\n")
  end)
  if live.is_container(live.BACKENDS[1]) then test.skip "the rest is of native sandboxes, and of backend none" end
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
    if backend ~= "native" then return end
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

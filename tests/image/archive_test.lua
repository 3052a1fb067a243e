--- Archives nobody checked: what they may do, what they may not, and what is left of those that are refused.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local lab = dofile((debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or ".") .. "/lab.lua")
local lu = require "luaunit"
local store = require "agentbox.image.store"

local M = {}

local count = 0
local home

function M.setUp()
  count = count + 1
  home = lab.dir .. "/home" .. count
  store._home = home
end

function M.tearDown()
  lu.assertTrue(lab.victim_is_untouched())
  lu.assertEquals(lab.names(home, "tmp"), {})
  lab.forget()
  lu.assertEquals(lab.names(home, "trees"), {})
  store._home = nil
end

local function import(file, opts)
  opts = opts or {}
  opts.name = opts.name or "test"
  local images, problem = ab.image.import(lab.archive(file), opts)
  return images and images[1], problem
end

local function root_of(file, opts)
  return assert(import(file, opts)).root
end

local function refused(file, code, text, opts)
  local image, problem = import(file, opts)
  lu.assertNil(image, file)
  lu.assertEquals(problem.code, code, problem.msg)
  lu.assertStrContains(problem.msg, text)
  lu.assertEquals(ab.image.list(), {})
  lu.assertEquals(lab.names(home, "trees"), {})
end

function M.test_paths_that_lead_out_are_refused()
  refused("dotdot.tar", "invalid", '".."')
  refused("dotdot_inside.tar", "invalid", '".."')
  refused("hard_link_dotdot.tar", "invalid", '".."')
  refused("long_path.tar", "toobig", "too long")
  refused("long_name.tar", "toobig", "too long")
end

function M.test_the_root_of_an_archive_is_the_root_of_the_tree()
  local root = root_of "absolute.tar"
  lu.assertEquals(fs.read(root .. lab.victim .. "/absolute"), "x")
end

function M.test_links_lead_nowhere_else()
  for _, name in ipairs { "through_absolute_link", "through_relative_link" } do refused(name .. ".tar", "invalid", "escaped") end
  for _, name in ipairs { "hard_link_out", "hard_link_via_link", "no_such_target" } do
    refused(name .. ".tar", "invalid", "does not exist")
  end
end

function M.test_a_file_takes_the_place_of_a_link()
  local root = root_of "through_file_link.tar"
  lu.assertEquals(fs.lstat(root .. "/f").type, "file")
  lu.assertEquals(fs.read(root .. "/f"), "overwritten")
end

function M.test_devices_are_left_out_and_counted()
  local image = assert(import "devices.tar")
  lu.assertEquals(fs.read(image.root .. "/ok"), "ok")
  lu.assertEquals(fs.lstat(image.root .. "/pipe").type, "fifo")
  lu.assertNil(fs.lstat(image.root .. "/null"))
  lu.assertNil(fs.lstat(image.root .. "/disk"))
  lu.assertStrContains(fs.read(image.root .. "/../tree.json"), '"skipped":2')
end

function M.test_damaged_archives()
  refused("cut.tar", "parse", "damaged")
  refused("cut.tar.gz", "parse", "damaged")
  refused("garbage.tar", "parse", "damaged")
  refused("empty.tar", "invalid", "is no image")
  refused("root_is_file.tar", "invalid", "root")
end

function M.test_bombs()
  refused("bomb.tar.gz", "toobig", "1024 MB")
  refused("sparse.tar", "toobig", "4 MB", { max_bytes = 4 << 20 })
end

function M.test_what_is_deep_can_be_removed()
  local root = root_of "deep.tar"
  lu.assertEquals(fs.read(root .. "/ok"), "ok")
end

function M.test_the_last_of_duplicates_stays()
  local root = root_of "duplicates.tar"
  lu.assertEquals(fs.lstat(root .. "/f").type, "file")
  lu.assertEquals(fs.read(root .. "/f"), "last")
  lu.assertEquals(fs.stat(root .. "/f").mode, 384) -- 0600
end

function M.test_whiteouts_without_a_name()
  refused("whiteout_dots.tar", "invalid", "whiteout")
  refused("whiteout_dotdot.tar", "invalid", "whiteout")
  refused("whiteout_nothing.tar", "invalid", "whiteout")
end

function M.test_names_are_bytes()
  local root = root_of "unicode.tar"
  lu.assertEquals(fs.read(root .. "/na\u{ef}ve"), "1")
  lu.assertEquals(fs.read(root .. "/new\nline"), "2")
  lu.assertEquals(fs.read(root .. "/\xff"), "3")
end

function M.test_modes_and_owners()
  local image = assert(import "setuid.tar")
  lu.assertEquals(fs.stat(image.root .. "/su").mode, 2541) -- 04755
  lu.assertEquals(fs.stat(image.root .. "/sticky").mode, 1023) -- 01777
  local theirs, huge = fs.stat(image.root .. "/theirs"), fs.stat(image.root .. "/huge_owner")
  local mine = require "agentbox.sys.os".uid()
  lu.assertEquals({ theirs.uid, huge.uid }, lab.root and { 1234, 65534 } or { mine, mine })
  lu.assertEquals(fs.stat(image.root .. "/..").mode, 448) -- 0700: nobody else's setuid programs
end

function M.test_attributes_of_overlays_do_not_come_in()
  local image = assert(import "attributes.tar")
  local names = lab.sh(("python3 -c 'import os; print(os.listxattr(\"%s/f\"))'"):format(image.root))
  lu.assertEquals(names, "['user.kept']\n")
end

function M.test_two_layers()
  local image = assert(import("saved.tar"))
  local root = image.root
  lu.assertEquals(#image.layers, 2)
  lu.assertEquals(fs.read(root .. "/opq/new"), "new")
  lu.assertNil(fs.lstat(root .. "/opq/old"))
  lu.assertNil(fs.lstat(root .. "/gone"))
  lu.assertEquals(fs.read(root .. "/own"), "own") -- a layer's whiteouts are for those below
  lu.assertEquals(fs.stat(root .. "/linked").ino, fs.stat(root .. "/data/lower").ino)
  lu.assertEquals(fs.stat(root .. "/data/lower").mtime, 1577934245)
  lu.assertEquals(image.env.FOO, "bar")
  lu.assertEquals(image.workdir, "/data")
end

function M.test_images_that_share_layers_share_files_and_change_nothing_of_each_other()
  local base = assert(import("saved_base.tar", { name = "base" }))
  local above = assert(import("saved.tar", { name = "above" }))
  lu.assertEquals(fs.stat(base.root .. "/bin/sh").ino, fs.stat(above.root .. "/bin/sh").ino)
  local poison = assert(import("saved_poison.tar", { name = "poison" }))
  for _, image in ipairs { base, above, poison } do lu.assertEquals(fs.read(image.root .. "/data/lower"), "lower\n") end
  lu.assertEquals(fs.read(base.root .. "/opq/old"), "old")
  assert(ab.image.rm "base")
  local counts = ab.image.gc()
  lu.assertEquals({ counts.trees, counts.in_use }, { 1, 0 })
  lu.assertEquals(fs.read(above.root .. "/data/lower"), "lower\n")
end

function M.test_a_layer_that_is_not_what_the_image_promises()
  refused("saved_wrong_diff.tar", "protocol", "promises")
end

function M.test_a_bundle_cannot_name_files_of_the_machine()
  refused("saved_link_out.tar", "invalid", "no file")
  refused("saved_dotdot.tar", "invalid", "no file")
end

function M.test_a_cap_on_entries_of_bundles_and_on_what_has_no_name()
  local image, problem = ab.image.import(lab.archive "base.tar")
  lu.assertNil(image)
  lu.assertEquals(problem.code, "badarg")
  lu.assertStrContains(problem.hint, "--name")
end

function M.test_a_sandbox_stands_on_it()
  lab.needs_mapped_ids()
  assert(import("saved.tar", { name = "two:1" }))
  local sb <close> = assert(ab.sandbox.create { image = "two:1" })
  local out = sb:must_exec "pwd; echo $FOO; cat /own; echo more >> /data/lower; cat lower; ls /gone /opq"
  lu.assertEquals(out.stdout, "/data\nbar\nownlower\nmore\n/opq:\nnew\n")
  lu.assertEquals(fs.read(ab.image.get "two:1".root .. "/data/lower"), "lower\n")
end

function M.test_its_config_gives_way_to_what_is_asked_for()
  assert(import("saved.tar", { name = "two:1" }))
  local sb <close> = assert(ab.sandbox.create { image = "two:1", env = { FOO = "mine" }, workspace = "/w" })
  lu.assertEquals(sb:must_exec("pwd; echo $FOO").stdout, "/w\nmine\n")
end

function M.test_what_a_sandbox_stands_on_is_not_collected()
  lab.needs_mapped_ids()
  local image = assert(import("saved.tar", { name = "held:1" }))
  local run = [[local ab = require "agentbox"; local sb <close> = assert(ab.sandbox.create { image = "held:1" })
    print "ready"; io.stdout:flush(); io.read()]]
  assert(fs.write(lab.dir .. "/hold.lua", run))
  local process <close>, plain = lab.spawn { "/usr/bin/env", "AGENTBOX_HOME=" .. home,
    ("/proc/%d/exe"):format(require "agentbox.sys.os".pid()), "script", lab.dir .. "/hold.lua" }
  lu.assertEquals(process:read(), "ready\n")
  assert(ab.image.rm "held:1")
  local counts, problem = ab.image.gc()
  lu.assertEquals(counts and { counts.trees, counts.in_use }, { 0, 1 }, problem and problem.msg)
  lu.assertTrue(fs.exists(image.root .. "/own"))
  process:write "\n"
  process:wait(30)
  plain:close()
end

function M.test_b41_an_entrypoint_swallows_nothing()
  assert(import("saved_entrypoint.tar", { name = "entry:1" }))
  local sb <close> = assert(ab.sandbox.create { image = "entry:1" })
  lu.assertEquals(sb:must_exec("echo ok").stdout, "ok\n")
end

function M.test_b43_a_full_disk_is_told_and_leaves_nothing()
  if not lab.root then ab.test.skip "only root can mount a small disk" end
  local said = lab.sh(([[unshare -m sh -c 'mkdir %s/small && mount -t tmpfs -o size=6m none %s/small || exit 1
    AGENTBOX_HOME=%s/small/home; export AGENTBOX_HOME
    /proc/%d/exe image import %s/saved.tar; echo status $?; /proc/%d/exe image list; ls %s/small/home/images/tmp']])
    :format(lab.dir, lab.dir, lab.dir, require "agentbox.sys.os".pid(), lab.dir, require "agentbox.sys.os".pid(), lab.dir))
  lu.assertStrContains(said, "No space left on device")
  lu.assertStrMatches(said, ".*status 3\n$")
end

function M.test_a_store_on_a_file_system_that_maps_no_ids()
  if not lab.root then ab.test.skip "only root can mount an overlay" end
  local pid = require "agentbox.sys.os".pid()
  assert(fs.write(lab.dir .. "/look.lua", [[
    local ab = require "agentbox"
    local sb <close> = assert(ab.sandbox.create { image = "saved:1", workspace = "/w" })
    local _, problem = ab.sandbox.create { image = "saved:1" }
    io.stdout:write(problem.code, " ", problem.msg, "\n", sb:must_exec("touch made; cat /opq/new").stdout, "\n")]]))
  local said = lab.sh(([[unshare -m sh -c 'cd %s && mkdir -p ov &&
    mount -t tmpfs none ov && mkdir ov/l ov/u ov/w ov/m &&
    mount -t overlay overlay -o lowerdir=ov/l,upperdir=ov/u,workdir=ov/w ov/m || exit 1
    AGENTBOX_HOME=%s/ov/m; export AGENTBOX_HOME
    /proc/%d/exe image import saved.tar >/dev/null && /proc/%d/exe script look.lua']]):format(lab.dir, lab.dir, pid, pid))
  lu.assertStrContains(said, ": its file system maps no user ids")
  lu.assertStrContains(said, "unsupported ")
  lu.assertStrContains(said, "nobody inside can change its files, and it has /data, the workspace")
  lu.assertStrMatches(said, ".*new\n$")
end

local function status_of(pid, key)
  return (fs.read("/proc/" .. pid .. "/status", 65536) or ""):match(key .. ":%s*([^\n]*)")
end

-- Stopped in the middle of an archive, so that it can be looked at.
function M.test_the_program_that_unpacks_is_confined()
  local fifo, dest = lab.dir .. "/fifo" .. count, lab.dir .. "/dest" .. count .. "/root"
  lab.sh("mkfifo " .. fifo)
  assert(fs.mkdir(dest, true))
  local pipe <close> = assert(io.open(fifo, "r+"))
  pipe:write(assert(fs.read(lab.archive "base.tar")):sub(1, 20000))
  pipe:flush()
  local us = "/proc/" .. require "agentbox.sys.os".pid()
  local words = ("--archive-child unpack %s layer %s - 99999999 9999 %s -"):format(dest, lab.root and "own" or "flat", fifo)
  local process <close>, plain = lab.spawn { "/bin/sh", "-c", ("echo $$; exec %s/exe %s"):format(us, words) }
  local launcher = assert(process:read()):match "%d+"
  local worker
  lab.wait_for(function()
    worker = (fs.read(("/proc/%s/task/%s/children"):format(launcher, launcher), 4096) or ""):match "%d+"
    return worker and status_of(worker, "NoNewPrivs") == "1" and fs.exists(dest .. "/bin")
  end)
  lu.assertEquals(status_of(worker, "CapEff"), "000000008000001b") -- chown, dac_override, fowner, fsetid, setfcap
  lu.assertEquals(status_of(worker, "CapBnd"), "0000000000000000")
  lu.assertEquals(status_of(worker, "Uid"):match "%d+", lab.root and (lab.maps_ids() and tostring(0x6fff0000) or "0") or tostring(fs.stat(dest).uid))
  lu.assertStrMatches(status_of(worker, "NSpid"), "%d+%s+1")
  for _, kind in ipairs { "user", "mnt", "net", "ipc", "uts", "pid" } do
    lu.assertNotEquals(fs.readlink(("/proc/%s/ns/%s"):format(worker, kind)), fs.readlink(us .. "/ns/" .. kind), kind)
  end
  local open = {}
  for _, entry in ipairs(fs.list("/proc/" .. worker .. "/fd")) do
    local what = fs.readlink(("/proc/%s/fd/%s"):format(worker, entry.name)):gsub("^pipe:.*", "pipe")
    if what ~= "/bin/sh" then open[#open + 1] = what end -- which it is writing
  end
  table.sort(open)
  lu.assertEquals(open, { fifo, "pipe", "pipe", "pipe" })
  local root = fs.stat("/proc/" .. worker .. "/root/.")
  lu.assertEquals({ root.ino, fs.stat("/proc/" .. worker .. "/root/..").ino }, { fs.stat(dest).ino, root.ino })
  lab.sh("kill -9 " .. launcher)
  process:wait(30)
  lab.wait_for(function() return (status_of(worker, "State") or "Z"):find "^Z" end) -- the first process of a container may take none
  plain:close()
end

function M.test_looking_makes_nothing()
  store._home = home .. "-none"
  lu.assertEquals(ab.image.list(), {})
  lu.assertNil((ab.image.get "x"))
  lu.assertNil((ab.sandbox.create { image = "x" }))
  lu.assertFalse(fs.exists(store._home))
  store._home = home
end

function M.test_an_image_that_is_not_here()
  local sb, problem = ab.sandbox.create { image = "not-here:1" }
  lu.assertNil(sb)
  lu.assertEquals(problem.code, "notfound")
  lu.assertEquals(problem.hint, "agentbox image pull not-here:1")
end

return M

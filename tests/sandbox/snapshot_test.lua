--- Snapshots: what was changed becomes a layer while the sandbox lives on; forks, and what differs.
local ab = require "agentbox"
local lu = require "luaunit"

local M = {}

local SHORT = os.getenv "AGENTBOX_TEST_SHORT"

local function create(extra)
  local spec = { limits = { memory_mb = 256, pids_limit = 64, cpu_count = 1, disk_mb = 64 } }
  for key, value in pairs(extra or {}) do spec[key] = value end
  return assert(ab.sandbox.create(spec))
end

local function sh(sb, text)
  local out = assert(sb:exec(text, { timeout_s = 60 }))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  return out.stdout
end

local TREE = [[cd /workspace; find . -printf '%p %y %m %U %l\n' | sort; find . -type f -exec sha256sum {} + | sort]]

function M.test_forks_begin_with_the_files_and_are_independent()
  local sb <close> = create()
  sh(sb, [[mkdir -p d/e; printf one > d/e/f; chmod 640 d/e/f; ln -s d/e/f link; printf x > gone; rm gone
    echo 'more' >> /etc/hosts; rm /etc/debian_version; rm -rf /etc/ssl; mkdir /etc/ssl; touch /etc/ssl/mine]])
  local kids <close> = assert(sb:fork(3))
  lu.assertEquals(#kids, 3)
  local tree = sh(sb, TREE)
  for i, kid in ipairs(kids) do
    lu.assertEquals(sh(kid, TREE), tree)
    lu.assertEquals(sh(kid, "tail -n 1 /etc/hosts; ls /etc/ssl; test -e /etc/debian_version || echo away"), "more\nmine\naway\n")
    sh(kid, ("printf %d > d/e/f; printf %d > own%d"):format(i, i, i))
  end
  sh(sb, "printf parent > d/e/f")
  for i, kid in ipairs(kids) do
    lu.assertEquals(sh(kid, "cat d/e/f; ls"), ("%dd\nlink\nown%d\n"):format(i, i))
    lu.assertEquals(assert(kid:read("own" .. i)), tostring(i))
  end
  lu.assertEquals(sh(sb, "cat d/e/f; ls"), "parentd\nlink\n")
end

function M.test_a_layer_never_changes()
  local sb <close> = create()
  local layers = {}
  for i = 1, 4 do
    assert(sb:write("n", tostring(i)))
    sh(sb, ("touch f%d; rm -f f%d"):format(i, i - 1))
    layers[i] = assert(sb:snapshot())
  end
  assert(sb:write("n", "5"))
  for i, layer in ipairs(layers) do
    local kid <close> = create { layers = { layer } }
    lu.assertEquals(sh(kid, "cat n; ls"), ("%df%d\nn\n"):format(i, i))
    layer:close()
  end
  lu.assertEquals(assert(sb:read "n"), "5")
end

-- More of them than layers may lie upon each other: some are merged.
function M.test_many_snapshots()
  local sb <close> = create()
  sh(sb, "mkdir a b; touch a/old b/old; rm -rf /etc/ssl")
  for i = 1, SHORT and 40 or 80 do
    sh(sb, ("rm -f last*; rm -rf b; mkdir b; touch last%d keep%d b/%d"):format(i, i, i))
    local layer <close> = assert(sb:snapshot())
    if i % 20 == 0 then
      local kid <close> = create { layers = { layer } }
      lu.assertEquals(sh(kid, "ls -d last*; ls keep* | wc -l; ls a b; test -e /etc/ssl || echo away"),
        ("last%d\n%d\na:\nold\n\nb:\n%d\naway\n"):format(i, i, i))
    end
  end
  lu.assertEquals(sh(sb, "ls a b | wc -l; test -e /etc/ssl || echo away"), "5\naway\n")
end

-- What one layer took away and a later one made anew hides what is below, also when the two have become one.
function M.test_a_merger_brings_nothing_back()
  local sb <close> = create()
  local look = "find workspace/d etc/ssl etc/apt | sort; python3 -c 'import os; print(os.listxattr(\"workspace/x\"))'"
  local expected = "etc/apt\netc/apt/new\netc/ssl\netc/ssl/new\nworkspace/d\nworkspace/d/new\n[]\n"
  local attribute = "python3 -c 'import os; os.%s' 2>/dev/null || true" -- older kernels have none in memory
  sh(sb, "mkdir -p d/sub x; touch d/old d/sub/old; head -c 4M /dev/urandom > heavy; " .. attribute:format 'setxattr("x", "user.a", b"1")')
  for i = 1, 36 do
    local change = ({
      [3] = "rm -rf d /etc/ssl /etc/apt; echo > /etc/apt", [4] = "touch x/y; " .. attribute:format 'removexattr("x", "user.a")',
      [5] = "mkdir d /etc/ssl; touch d/new /etc/ssl/new", [6] = "rm /etc/apt; mkdir -p /etc/apt/new",
    })[i]
    sh(sb, change or "touch k" .. i)
    local layer <close> = assert(sb:snapshot())
    if i > 29 then
      local kid <close> = create { layers = { layer } }
      lu.assertEquals(sh(kid, "cd /; " .. look), expected)
    end
  end
  lu.assertEquals(sh(sb, "cd /; " .. look), expected)
end

function M.test_what_runs_goes_on_and_is_not_forked()
  local sb <close> = create()
  local server <close> = assert(sb:spawn "while read line; do echo \"$line\" >> log; echo got; done")
  lu.assertEquals(server:ask("one\n", { until_text = "got", timeout_s = 20 }), "got")
  local kids <close> = assert(sb:fork(1))
  lu.assertEquals(sh(kids[1], "cat log; ls /proc > ps; grep -c '^[0-9]' ps"), "one\n3\n") -- pid 1, the shell, ls
  assert(server:ask("two\n", { until_text = "got", timeout_s = 20 }))
  lu.assertEquals(sh(sb, "cat log"), "one\ntwo\n")
  lu.assertEquals(sh(kids[1], "cat log"), "one\n")
end

-- A command that starts beside one may be who hears that it is over: what waited for that is let go, and the next descriptor
-- of that number is not taken for it.
function M.test_commands_beside_snapshots()
  local sb <close> = create()
  for j = 1, 5 do
    sh(sb, "echo > f" .. j)
    local taking = ab.async.spawn(function() assert(sb:snapshot()):close() end)
    for _ = 1, 50 do
      if not sb:stat "f1" then break end
      ab.async.yield()
    end
    repeat until sb:stat "f1" -- without a turn for the loop
    local processes = {}
    for i = 1, 6 do processes[i] = assert(sb:spawn("read -r line; echo $line " .. i)) end
    for i, process in ipairs(processes) do lu.assertEquals(process:ask("got\n", { until_text = "\n", timeout_s = 60 }), "got " .. i .. "\n") end
    for _, process in ipairs(processes) do process:close() end
    assert(taking:join())
  end
end

-- A daemon that holds no pipe of ours would go on writing to what was frozen.
function M.test_a_daemon_is_seen()
  local sb <close> = create()
  sh(sb, "(setsid sh -c 'echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 &); until test -s pid; do sleep 0.01; done")
  sh(sb, "printf kept > f")
  local layer <close> = assert(sb:snapshot())
  lu.assertEquals(sh(sb, "kill -0 $(cat pid) && echo alive"), "alive\n")
  local kid <close> = create { layers = { layer } }
  lu.assertEquals(sh(kid, "cat f"), "kept")
end

function M.test_without_a_change_nothing_is_taken()
  local sb <close> = create()
  sh(sb, "echo 1 > f")
  local first <close> = assert(sb:snapshot()) -- luacheck: ignore
  local inodes = assert(sb:usage()).inodes
  sh(sb, "cat f; ls -R /etc > /dev/null")
  for _ = 1, 200 do -- were each a layer, there would be too many
    local layer <close> = assert(sb:snapshot()) -- luacheck: ignore
  end
  lu.assertEquals(assert(sb:usage()).inodes, inodes)
  for _, change in ipairs { "chmod 700 /", "rm f", "mkdir /srv/x", "echo 2 > /workspace/f" } do
    sh(sb, change)
    local look = "stat -c %a /; ls / /usr/local /workspace; cat f 2>/dev/null; true"
    local before = sh(sb, look)
    local layer <close> = assert(sb:snapshot())
    lu.assertEquals(#assert(sb:diff(layer)), 0, change)
    local kid <close> = create { layers = { layer } }
    lu.assertEquals(sh(kid, look), before, change)
    lu.assertEquals(sh(sb, look), before, change)
  end
end

function M.test_the_disk_is_limited_in_all()
  local sb <close> = create()
  for i = 1, 3 do
    sh(sb, ("head -c 15000000 /dev/zero > big%d"):format(i))
    local layer <close> = assert(sb:snapshot()) -- luacheck: ignore
  end
  lu.assertNotEquals(assert(sb:exec "head -c 30000000 /dev/zero > big4").exit_code, 0)
  sh(sb, "rm -f big4; head -c 5000000 /dev/zero > big5")
  local kids <close> = assert(sb:fork())
  lu.assertNotEquals(assert(kids[1]:exec "head -c 30000000 /dev/zero > big4").exit_code, 0)
end

local function listed(differences)
  local out = {}
  for i, d in ipairs(differences) do out[i] = d.kind .. " " .. d.path end
  return out
end

function M.test_differences()
  local seed = create()
  sh(seed, "mkdir -p d/deep; echo 1 > same; echo 1 > f; echo 1 > d/deep/x; echo 1 > d/deep/y; ln -s f link; mkdir gone; touch gone/a")
  local layer <close> = assert(seed:freeze())
  local sb <close> = create { layers = { layer } }
  lu.assertEquals(assert(sb:diff()), {})
  sh(sb, [[echo 1 > same; touch same; echo 2 > f; rm d/deep/x; rm -rf gone; ln -sf same link; mkdir -p new/sub; touch new/sub/z
    rm -rf d/deep; mkdir d/deep; echo 1 > d/deep/y; chmod 750 d; printf 'a' > 'new/line
break']])
  local all = { "changed /workspace/d", "removed /workspace/d/deep/x", "changed /workspace/f", "removed /workspace/gone",
    "changed /workspace/link", "added /workspace/new", "added /workspace/new/line\nbreak", "added /workspace/new/sub",
    "added /workspace/new/sub/z" }
  lu.assertEquals(listed(assert(sb:diff())), all)
  local point <close> = assert(sb:snapshot())
  lu.assertEquals(listed(assert(sb:diff())), all)
  lu.assertEquals(assert(sb:diff(point)), {})
  sh(sb, "rm new/sub/z; echo 1 > f")
  lu.assertEquals(listed(assert(sb:diff(point))), { "changed /workspace/f", "removed /workspace/new/sub/z" })
  local since_image = listed(assert(sb:diff "image"))
  lu.assertItemsEquals(since_image, { "added /workspace/d", "added /workspace/d/deep",
    "added /workspace/d/deep/y", "added /workspace/f", "added /workspace/link", "added /workspace/new",
    "added /workspace/new/line\nbreak", "added /workspace/new/sub", "added /workspace/same" })
end

function M.test_differences_are_looked_for_256_folders_deep()
  local sb <close> = create()
  sh(sb, [[mkdir -p "$(printf 'd/%.0s' $(seq 240))"]])
  lu.assertEquals(#assert(sb:diff()), 240)
  sh(sb, [[mkdir -p "$(printf 'd/%.0s' $(seq 300))"]])
  local found, problem = sb:diff()
  lu.assertEquals({ found, problem.code }, { nil, "toobig" })
  lu.assertStrContains(problem.msg, "more than 256 folders deep: /workspace/d/d")
end

function M.test_differences_in_a_closed_folder_are_seen_or_it_is_told()
  local sb <close> = create()
  sh(sb, "mkdir -p d/e; chmod 0 d")
  local found, problem = sb:diff()
  if found then return lu.assertEquals(listed(found), { "added /workspace/d", "added /workspace/d/e" }) end
  lu.assertEquals({ problem.code, problem.msg }, { "denied", "/workspace/d: Permission denied" })
end

function M.test_differences_below_usr()
  local sb <close> = create()
  if sb._raw:user_count() == 1 or assert(sb:exec "touch /usr/local/x").exit_code ~= 0 then lu.skip "the host's /usr stays as it is" end
  sh(sb, "rm -rf /usr/share/doc/bash; echo x > /usr/bin/newone")
  local found = table.concat(listed(assert(sb:diff())), "\n")
  lu.assertStrContains(found, "added /usr/bin/newone")
  lu.assertStrContains(found, "removed /usr/share/doc/bash")
end

-- Whoever comes in between is told so, and nothing is lost.
function M.test_meanwhile()
  local sb <close> = create()
  assert(sb:write("f", "1"))
  local taken
  ab.async.all {
    function() taken = sb:snapshot() end,
    function()
      local ok, problem = sb:write("f", "2")
      lu.assertTrue(ok or problem.code == "busy")
      local out
      out, problem = sb:exec "true"
      lu.assertTrue(out and out.exit_code == 0 or problem.code == "busy")
    end,
  }
  lu.assertNotNil(taken)
  taken:close()
  sh(sb, "test -s f")
end

-- In an engine of its own, whose first snapshot finds no descriptor left.
local WITHOUT_ROOM = [[
local ab = require "agentbox"
local sb = assert(ab.sandbox.create {})
assert(sb:exec "echo one > f")
local busy = ... and assert(sb:spawn { "sleep", "300" })
local layer, problem = sb:snapshot()
print(layer, problem and problem.code, problem and problem.msg:match "snapshot")
if layer then os.exit(9) end
print(assert(sb:exec "cat f; echo two > f").stdout, (sb:read "f"))
if busy then busy:close() end
do
  local kids <close> = assert(sb:fork(1))
  print(assert(kids[1]:exec "cat f").stdout)
end
sb:close()
]]

function M.test_one_that_cannot_be_taken_leaves_the_sandbox_as_it_was()
  local dir = assert(ab.fs.tmpdir "agentbox-snapshot-")
  assert(ab.fs.write(dir .. "/s.lua", WITHOUT_ROOM))
  local host <close> = assert(ab.sandbox.create { backend = "none" })
  for _, inhabited in ipairs { "", " inhabited" } do
    local out = assert(host:exec(("AGENTBOX_FAULTS=sandbox_snapshot:1:24 '%s' script %s/s.lua%s")
      :format(assert(ab.fs.realpath "/proc/self/exe"), dir, inhabited), { timeout_s = 60 }))
    if out.exit_code == 9 then ab.test.skip "the failure points are not compiled in" end
    lu.assertEquals(out.stdout, "nil\tsys\tsnapshot\none\n\ttwo\n\ntwo\n\n", out.stderr)
  end
  ab.fs.remove(dir, true)
end

function M.test_a_closed_one()
  local sb = create()
  sb:close()
  local layer, problem = sb:snapshot()
  lu.assertNil(layer)
  lu.assertEquals(problem.code, "sandbox")
  lu.assertEquals(select(2, sb:diff()).code, "sandbox")
  lu.assertErrorMsgContains("from 1 to", function() return sb:fork(0) end)
end

return M

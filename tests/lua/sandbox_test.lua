local ab = require "agentbox"
local async = require "agentbox.async"
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"
local sys = require "agentbox.sys.sandbox"

local M = {}

local sb
local root = sys.probe().root

function M.setUp()
  sb = assert(ab.sandbox.create { limits = { disk_mb = 256 } })
end

function M.tearDown()
  sb:close()
end

local function sh(text, opts)
  return assert(sb:exec(text, opts))
end

function M.test_the_readme_example()
  assert(sb:write("t.py", "print(6*7)\n"))
  local out = sh("python3 t.py", { timeout_s = 10 })
  lu.assertEquals({ out.exit_code, out.stdout, out.stderr, out.timed_out, out.truncated }, { 0, "42\n", "", false, false })
  lu.assertEquals(sh("python -c 'print(1)'").stdout, "1\n")
end

function M.test_what_a_command_finds()
  lu.assertEquals(sh("pwd; id -u; hostname; echo $HOME $LANG; cat").stdout, "/workspace\n0\nsandbox\n/root C.UTF-8\n")
  lu.assertEquals(sh("pwd", { cwd = "/tmp" }).stdout, "/tmp\n")
  lu.assertEquals(assert(sb:exec { "ls", "/proc/self/fd" }).stdout, "0\n1\n2\n3\n") -- 3 is the folder
  lu.assertEquals(sh("cat /proc/self/status | grep -E 'NoNewPrivs|^Seccomp:'").stdout, "NoNewPrivs:\t1\nSeccomp:\t2\n")
end

function M.test_how_commands_end()
  lu.assertEquals(sh("exit 7").exit_code, 7)
  local out = sh("kill -TERM $$")
  lu.assertEquals({ out.exit_code, out.signal }, { 143, "SIGTERM" })
  out = sh("echo early; sleep 100", { timeout_s = 1 })
  lu.assertEquals({ out.exit_code, out.timed_out, out.stdout }, { -1, true, "early\n" })
  out = assert(sb:exec { "no-such-program" })
  lu.assertEquals(out.exit_code, 127)
  lu.assertStrContains(out.stderr, "No such file")
  lu.assertEquals(assert(sb:exec { "/etc/passwd" }).exit_code, 126)
  out = sh("true", { cwd = "/nowhere" })
  lu.assertEquals(out.exit_code, 126)
  lu.assertStrContains(out.stderr, "/nowhere")
end

function M.test_a_script_without_interpreter_and_words_without_a_shell()
  assert(sb:write("s", "echo script $1\n", { mode = 493 }))
  lu.assertEquals(assert(sb:exec { "./s", "a b" }).stdout, "script a b\n")
  lu.assertEquals(assert(sb:exec { "/bin/echo", "$HOME;`id`" }).stdout, "$HOME;`id`\n")
end

function M.test_environment()
  local other <close> = assert(ab.sandbox.create { env = { A = "1", B = "2" } })
  lu.assertEquals(assert(other:exec("echo $A$B$C", { env = { B = "x", C = 3 } })).stdout, "1x3\n")
  lu.assertEquals(assert(other:exec("echo ${A-none}", { env = { A = false } })).stdout, "none\n")
  lu.assertError(function() return other:exec("true", { env = { ["A=B"] = "x" } }) end)
end

function M.test_large_input_and_output()
  local input = ("0123456789abcdef"):rep(1 << 17)
  lu.assertEquals(sh("wc -c", { stdin = input }).stdout, #input .. "\n")
  lu.assertEquals(sh("head -c 10", { stdin = input }).stdout, input:sub(1, 10)) -- it leaves the rest
  local out = sh "head -c 3000000 /dev/zero; echo end >&2"
  lu.assertEquals({ #out.stdout, out.stdout_dropped, out.truncated, out.stderr }, { 1 << 20, 3000000 - (1 << 20), true, "end\n" })
  out = sh("echo abcdef", { max_output_bytes = 3 })
  lu.assertEquals({ out.stdout, out.stdout_dropped }, { "abc", 4 })
end

function M.test_arguments_that_the_kernel_refuses()
  local _, problem = sb:exec(("x"):rep(200000))
  lu.assertEquals(problem.code, "toobig")
  local words = { "/bin/true" }
  for i = 2, 30 do words[i] = ("y"):rep(100000) end
  _, problem = sb:exec(words)
  lu.assertEquals(problem.code, "toobig")
  words = { "/bin/echo" }
  for i = 2, 10 do words[i] = ("z"):rep(100000) end -- more than one packet, and fine
  lu.assertEquals(#assert(sb:exec(words)).stdout, 9 * 100001)
end

function M.test_a_daemon_does_not_hold_the_command()
  local out = sh("sleep 1000 & echo done", { timeout_s = 20 })
  lu.assertEquals({ out.stdout, out.timed_out }, { "done\n", false })
  sh "until pgrep -x sleep; do :; done"
  assert(sb:kill_all())
  lu.assertEquals(sh("pgrep -c sleep").stdout, "0\n")
end

function M.test_output_as_it_comes()
  local seen = {}
  local out = sh("echo a; echo b >&2; echo c", { on_output = function(chunk, stream) seen[#seen + 1] = stream .. chunk end })
  lu.assertEquals({ out.stdout, out.stderr, out.exit_code }, { "a\nc\n", "b\n", 0 })
  lu.assertStrContains(table.concat(seen), "stderrb\n")
  out = sh("yes | head -c 1000000", { on_output = function() end, max_output_bytes = 10 })
  lu.assertEquals({ #out.stdout, out.stdout_dropped }, { 10, 999990 })
end

function M.test_a_process_that_one_talks_to()
  local p <close> = assert(sb:spawn "while read x; do echo got:$x; done; echo bye >&2; exit 4")
  lu.assertEquals(p:ask("one\n", { until_text = "\n", timeout_s = 10 }), "got:one\n")
  local bytes, problem = p:read { until_text = "never", timeout_s = 0.05 }
  lu.assertNil(bytes)
  lu.assertEquals({ problem.code, problem.partial }, { "timeout", "" })
  assert(p:write "two\n")
  p:close_stdin()
  local out = assert(p:wait(10))
  lu.assertEquals({ out.stdout, out.stderr, out.exit_code, p:running() }, { "got:two\n", "bye\n", 4, false })
  lu.assertNil((p:read()))
end

function M.test_a_terminal()
  local p <close> = assert(sb:spawn({ "sh" }, { pty = true, rows = 11, cols = 33 }))
  assert(p:write "stty size; tty\n")
  lu.assertStrContains(assert(p:read { until_text = "/dev/pts/0", timeout_s = 10 }), "11 33")
  p:kill()
  lu.assertEquals(assert(p:wait(10)).signal, "SIGKILL")
end

function M.test_a_full_reader_stops_the_writer_and_wait_lets_it_go()
  local p <close> = assert(sb:spawn("head -c 5000000 /dev/zero", { max_output_bytes = 65536 }))
  local out = assert(p:wait(20))
  lu.assertEquals({ #out.stdout, out.stdout_dropped }, { 65536, 5000000 - 65536 })
end

function M.test_commands_at_once()
  local outs = async.all {
    function() return sh "sleep 0.2; echo 1" end,
    function() return sh "sleep 0.1; echo 2" end,
    function() return sh("sleep 100; echo 3", { timeout_s = 0.3 }) end,
  }
  local said = {}
  for i, value in ipairs(outs) do said[i] = type(value) == "table" and value.stdout or value[1].stdout end
  lu.assertEquals(said, { "1\n", "2\n", "" })
end

-- A thousand rollouts that begin together make few sandboxes at a time; who gives up waiting takes no turn along.
function M.test_few_boots_at_once()
  local now, most, made = 0, 0, 0
  package.loaded["agentbox.backends.counted"] = { name = "counted", create = function()
    now = now + 1
    most, made = math.max(most, now), made + 1
    ab.async.yield()
    ab.async.sleep(0.001)
    now = now - 1
    return nil, { code = "sandbox", msg = "only counted" }
  end }
  ab.sandbox.limit_boots(3)
  local fibers = {}
  for i = 1, 60 do fibers[i] = ab.async.spawn(ab.sandbox.create, { backend = "counted" }) end
  ab.async.yield()
  for i = 10, 60, 5 do fibers[i]:cancel() end
  for i = 1, 60 do fibers[i]:join() end
  lu.assertEquals(now, 0)
  lu.assertEquals(most, 3)
  lu.assertEquals(made, 49)
  ab.sandbox.create { backend = "counted" }
  lu.assertEquals(made, 50)
  lu.assertErrorMsgContains("positive integer", ab.sandbox.limit_boots, 0)
  ab.sandbox.limit_boots(8)
  package.loaded["agentbox.backends.counted"] = nil
end

function M.test_cancel_kills()
  local fiber = async.spawn(function() return sb:exec "sleep 1000" end)
  while sh("pgrep -c sleep").stdout ~= "1\n" do async.sleep(0.01) end
  fiber:cancel()
  fiber:join(10)
  while sh("pgrep -c sleep").stdout ~= "0\n" do async.sleep(0.01) end
end

function M.test_files()
  assert(sb:write("a/b/c.txt", "one"))
  assert(sb:append("a/b/c.txt", " two"))
  lu.assertEquals(sb:read "a/b/c.txt", "one two")
  lu.assertEquals(sb:read("/workspace/a/b/c.txt", { max_bytes = 3, truncate = true }), "one")
  lu.assertEquals(select(2, sb:read("a/b/c.txt", { max_bytes = 3 })).code, "toobig")
  lu.assertEquals(select(2, sb:write("a/b/c.txt", "", { exclusive = true })).code, "exists")
  lu.assertEquals(select(2, sb:read "none").code, "notfound")
  lu.assertEquals(select(2, sb:write("a/b", "x")).code, "invalid")
  assert(sb:write("x.sh", "#!/bin/sh\necho ran\n", { mode = 448 }))
  lu.assertEquals(sh("./x.sh; stat -c %a:%u x.sh a").stdout, "ran\n700:0\n755:0\n")
  assert(sb:rename("x.sh", "a/y.sh"))
  assert(sb:mkdir("a/deep/er"))
  local names = {}
  for _, entry in ipairs(assert(sb:list(".", { recursive = true }))) do names[#names + 1] = entry.name .. ":" .. entry.type end
  lu.assertEquals(table.concat(names, " "), "a:dir a/b:dir a/b/c.txt:file a/deep:dir a/deep/er:dir a/y.sh:file")
  lu.assertEquals(assert(sb:stat "a/b/c.txt").size, 7)
  sh "ln -s nowhere link"
  lu.assertEquals(assert(sb:stat("link", { follow = false })).target, "nowhere")
  lu.assertNil(sb:remove "a")
  assert(sb:remove("a", { recursive = true }))
  lu.assertEquals(select(2, sb:stat "a").code, "notfound")
end

-- A file's writers wait for each other, and those inside may write for minutes: the loop goes on meanwhile.
function M.test_a_write_beside_others_keeps_nobody_waiting()
  local _ <close> = assert(sb:spawn "while :; do echo inside >/tmp/shared; done")
  for _, opts in ipairs { {}, { mode = 384 }, { append = true } } do
    local others
    async.spawn(function() others = true end)
    lu.assertTrue(sb:write("/tmp/shared", "from\0outside", opts))
    lu.assertTrue(others, "the loop waited")
  end
  lu.assertEquals(assert(sb:stat "/tmp/shared").mode, 384)
  lu.assertTrue(sb:write("/tmp/own", "a\0b", { exclusive = true }))
  lu.assertTrue(sb:write("/tmp/own", "c", { append = true }))
  lu.assertEquals(assert(sb:read "/tmp/own"), "a\0bc")
  local ok, err = sb:write("/tmp/own", "d", { exclusive = true })
  lu.assertNil(ok)
  lu.assertEquals({ err.code, err.op }, { "exists", "sandbox.write" })
end

function M.test_bytes_survive()
  local bytes = {}
  for i = 0, 255 do bytes[i + 1] = string.char(i) end
  local all = table.concat(bytes):rep(100)
  assert(sb:write("bin", all))
  lu.assertEquals(sh("cat bin", {}).stdout, all)
  lu.assertEquals(sb:read "bin", all)
end

function M.test_the_disk_has_a_size()
  local small <close> = assert(ab.sandbox.create { limits = { disk_mb = 8, inodes = 200 } })
  local _, problem = small:write("big", ("x"):rep(9 << 20))
  lu.assertEquals(problem.code, "full")
  local out = assert(small:exec "head -c 30M /dev/zero > /tmp/big; rm -f /tmp/big big; echo ok > small; cat small")
  lu.assertEquals(out.stdout, "ok\n")
  lu.assertStrContains(assert(small:exec "for i in $(seq 300); do touch $i; done").stderr, "No space left")
end

function M.test_freeze_and_stand_on_it()
  assert(sb:write("seed.txt", "seed"))
  sh "rm -f /etc/host.conf; mkdir -p /usr/local/new 2>/dev/null; (setsid sleep 1000 &)"
  local layer <close> = assert(sb:freeze())
  lu.assertEquals(select(2, sb:exec "true").code, "sandbox")
  local one <close> = assert(ab.sandbox.create { layers = { layer } })
  local two <close> = assert(ab.sandbox.create { layers = { layer } })
  assert(one:write("seed.txt", "changed"))
  lu.assertEquals({ one:read "seed.txt", two:read "seed.txt" }, { "changed", "seed" })
  lu.assertEquals(select(2, two:stat "/etc/host.conf").code, "notfound")
  lu.assertEquals(assert(two:exec "pgrep -c sleep").stdout, "0\n")
  local upper <close> = assert(one:freeze())
  local three <close> = assert(ab.sandbox.create { layers = { upper } })
  lu.assertEquals(three:read "seed.txt", "changed")
  local counts = assert(ab.sandbox.copy_tree(three, "/workspace", two, "/workspace"))
  lu.assertEquals(counts.files, 1)
  lu.assertEquals(two:read "seed.txt", "changed")
end

function M.test_an_image_is_a_directory_that_never_changes()
  local dir = assert(fs.tmpdir "agentbox-image-")
  for _, name in ipairs { "usr", "bin", "lib", "lib64" } do
    if name == "usr" then assert(fs.mkdir(dir .. "/usr")) else sh(("true %s"):format(name)) end
  end
  assert(fs.write(dir .. "/hello", "from the image", {}))
  local other <close> = assert(ab.sandbox.create { image = dir })
  lu.assertEquals(other:read "/hello", "from the image")
  if root then
    assert(other:write("/hello", "changed"))
    lu.assertEquals(other:read "/hello", "changed")
  end
  lu.assertEquals(fs.read(dir .. "/hello", 100), "from the image")
  lu.assertEquals(#assert(fs.list(dir)), 2)
  lu.assertEquals(assert(other:exec { "/bin/true" }).exit_code, 127)
  other:close()
  fs.remove(dir, true)
  lu.assertEquals(select(2, ab.sandbox.create { image = "/no/such/image" }).code, "notfound")
  lu.assertEquals(select(2, ab.sandbox.create { image = "relative" }).code, "notfound") -- of the image store
end

function M.test_trees_in_and_out()
  local dir = assert(fs.tmpdir "agentbox-tree-")
  assert(fs.mkdir(dir .. "/in/sub", true))
  assert(fs.mkdir(dir .. "/out"))
  assert(fs.write(dir .. "/in/sub/f", "file", {}))
  lu.assertEquals(assert(sb:put(dir .. "/in", "put")).files, 1)
  sh "chmod 4755 put/sub/f; mkfifo put/fifo; ln -s /etc/passwd put/link"
  local counts = assert(sb:get("put", dir .. "/out"))
  lu.assertEquals({ counts.files, counts.links, counts.skipped }, { 1, 1, 1 })
  lu.assertEquals(fs.read(dir .. "/out/sub/f", 100), "file")
  lu.assertEquals(assert(fs.stat(dir .. "/out/sub/f")).mode & 3584, 0) -- no set-user-id on the host
  fs.remove(dir, true)
end

function M.test_users_inside()
  if sb._raw:user_count() == 1 then
    return lu.assertEquals(select(2, sb:exec("id", { user = 1000 })).code, "unsupported")
  end
  lu.assertEquals(sh("id -un; echo $HOME", { user = "user" }).stdout, "user\n/home/user\n")
  lu.assertEquals(sh("id -u; id -g", { user = "7:8" }).stdout, "7\n8\n")
  assert(sb:write("mine", "x", { owner = "user" }))
  lu.assertEquals(sh("stat -c %U mine").stdout, "user\n")
  lu.assertEquals(select(2, sb:exec("id", { user = "nobody-at-all" })).code, "notfound")
  local other <close> = assert(ab.sandbox.create { user = "user" })
  lu.assertEquals(assert(other:exec "id -un").stdout, "user\n")
end

function M.test_files_that_only_root_inside_may_touch()
  sh "echo secret > locked; chmod 000 locked; mkdir -m 555 closed"
  lu.assertEquals(sb:read "locked", "secret\n")
  lu.assertEquals(sb:read("locked", { max_bytes = 3, truncate = true }), "sec")
  assert(sb:write("locked", "other"))
  assert(sb:write("closed/f", "new", { mode = 384 }))
  lu.assertEquals(sh("cat locked closed/f; stat -c %a closed/f").stdout, "othernew600\n")
end

function M.test_memory()
  if not sys.probe().cgroup.memory then return end
  local small <close> = assert(ab.sandbox.create { limits = { memory_mb = 64 } })
  local out = assert(small:exec "python3 -c 'b = bytearray(300 << 20)'")
  lu.assertEquals({ out.oom, out.timed_out }, { true, false })
  out = assert(small:exec "exit 137") -- the number alone is no proof
  lu.assertEquals({ out.oom, out.exit_code }, { false, 137 })
  lu.assertTrue(assert(small:usage()).memory_peak_bytes > 32 << 20)
end

function M.test_misuse_is_blamed_on_the_caller()
  local ok, message = pcall(sb.exec, sb, "true", { timeout = 1 })
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(message), "timeout_s")
  lu.assertErrorMsgContains("limits", ab.sandbox.create, { limits = { memory = 1 } })
  lu.assertErrorMsgContains("workspace", ab.sandbox.create, { workspace = "x" })
  lu.assertEquals(select(2, ab.sandbox.create { backend = "missing" }).code, "badarg")
end

function M.test_close_twice_and_the_collector()
  local other = assert(ab.sandbox.create {})
  local pid = other._raw:pid()
  lu.assertNotNil(fs.stat("/proc/" .. pid))
  other:close()
  lu.assertNil((fs.stat("/proc/" .. pid)))
  other:close()
  local forgotten = assert(ab.sandbox.create {})
  pid = forgotten._raw:pid()
  forgotten = nil -- luacheck: ignore
  collectgarbage()
  collectgarbage()
  while fs.stat("/proc/" .. pid) do async.sleep(0.01) end
end

function M.test_a_sandbox_that_is_killed_is_an_error_not_an_outcome()
  local fiber = async.spawn(function() return sb:exec "sleep 1000" end)
  while sh("pgrep -c sleep").stdout ~= "1\n" do async.sleep(0.01) end
  ab.sandbox.create { backend = "none" }:exec { "kill", "-9", tostring(sb._raw:pid()) }
  local _, outcome, problem = fiber:join(10)
  lu.assertNil(outcome)
  lu.assertEquals(problem.code, "sandbox")
  lu.assertEquals(select(2, sb:exec "true").code, "sandbox")
end

function M.test_backend_none_keeps_the_same_promises()
  local plain <close> = assert(ab.sandbox.create { backend = "none" })
  assert(plain:write("d/f", "text", { mode = 384 }))
  local out = assert(plain:exec("cat d/f; stat -c %a d/f; echo e >&2; exit 3", { stdin = "x" }))
  lu.assertEquals({ out.stdout, out.stderr, out.exit_code }, { "text600\n", "e\n", 3 })
  lu.assertEquals(plain:read "d/f", "text")
  out = assert(plain:exec("sleep 1000 & sleep 1000", { timeout_s = 0.2 }))
  lu.assertEquals({ out.timed_out, out.exit_code }, { true, -1 })
  lu.assertEquals(assert(plain:exec { "no-such-program" }).exit_code, 127)
  lu.assertEquals(select(2, plain:exec("true", { cwd = "/" .. ("./"):rep(3000) })).code, "toobig")
  local p <close> = assert(plain:spawn { "cat" })
  lu.assertEquals(p:ask("hey\n", { until_text = "\n", timeout_s = 10 }), "hey\n")
  lu.assertNil(plain.freeze)
end

return M

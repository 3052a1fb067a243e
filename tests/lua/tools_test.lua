local json = require "agentbox.json"
local lu = require "luaunit"
local sandbox = require "agentbox.sandbox"
local test = require "agentbox.test"
local tool = require "agentbox.tool"

local M = {}
local sb

function M.setUp()
  local problem
  sb, problem = sandbox.create {}
  if not sb then test.skip("no native sandbox here: " .. problem.msg) end
end

function M.tearDown() if sb then sb:close() end end

local function use(name, args)
  local ctx = { sandbox = sb, workspace = "/workspace", time_left = function() return 30 end }
  local call = { id = "c", type = "function", ["function"] = { name = name, arguments = json.encode(args or json.object {}) } }
  local result = assert(tool.select {}):run(ctx, { call }, 60)[1]
  lu.assertNil(result.infra)
  return result.text, result
end

--- A user of this machine that no sandbox knows, or a word that is nowhere.
local function sandbox_free_name()
  for line in io.lines "/etc/passwd" do
    local name = line:match "^([^:]+)"
    if name == "messagebus" or name == "_apt" or name == "sshd" then return name .. ":x:" end
  end
  return "no such user anywhere"
end

local function sh(command)
  local out = assert(sb:exec(command, { cwd = "/workspace" }))
  lu.assertEquals(out.exit_code, 0, out.stderr)
  return out.stdout
end

function M.test_list_files()
  lu.assertEquals(use "list_files", "(empty)")
  sh "mkdir -p d/e .hid; touch b 'a x' d/e/f"
  lu.assertEquals(use "list_files", ".hid\na x\nb\nd")
  lu.assertEquals(use("list_files", { path = "d" }), "e")
  lu.assertEquals(use("list_files", { recursive = true }), ".hid\na x\nb\nd\nd/e\nd/e/f")
  lu.assertEquals(use("list_files", { path = "none" }), "ERROR: list_files failed: folder not found: none")
  lu.assertStrContains(use("list_files", { path = "/etc" }), "ERROR: list_files failed: path escapes the workspace: /etc")
end

function M.test_names_are_bytes_and_never_shell()
  sh [[touch -- '-rf' '$(touch pwn);a b' 'új 🤣' "$(printf 'x\ny')" "$(printf 'q\377')"]]
  local text = use "list_files"
  for _, name in ipairs { "-rf", "$(touch pwn);a b", "új 🤣", "x\\ny", "q\u{FFFD}" } do lu.assertStrContains(text, name) end
  lu.assertEquals(use("write_file", { path = "$(touch pwn) b/-x", content = "v" }), "Wrote 1 chars to $(touch pwn) b/-x")
  lu.assertEquals(use("read_file", { path = "$(touch pwn) b/-x" }), "v")
  lu.assertNotStrContains(use "list_files", "\npwn")
end

function M.test_read_file()
  sh "printf 'line\\n\\n  end \\n' > f; mkdir d; ln -s f link; ln -s none dangling; printf 'a\\377b' > bin"
  lu.assertEquals(use("read_file", { path = "f" }), "line\n\n  end \n")
  lu.assertEquals(use("read_file", { path = "bin" }), "a\u{FFFD}b")
  lu.assertEquals(use("read_file", { path = "none" }), "ERROR: read_file failed: file not found: none")
  lu.assertStrContains(use("read_file", { path = "d" }), "is a folder, not a file")
  lu.assertEquals(use("read_file", { path = "link" }), "line\n\n  end \n")
  lu.assertEquals(use("read_file", { path = "dangling" }), "ERROR: read_file failed: file not found: dangling")
end

function M.test_read_file_is_cut_at_code_points()
  sh "python3 -c \"open('big','w').write('é'*200010)\""
  local text = use("read_file", { path = "big" })
  lu.assertEquals(text:sub(-25), "\n\n...[truncated 10 chars]")
  lu.assertEquals(utf8.len(text), 200000 + #"\n\n...[truncated 10 chars]")
end

--- Whatever an agent makes of its workspace, a file tool answers: no hang, no way out, no failure of the infrastructure.
function M.test_hostile_paths()
  sh [[ln -s loop loop; ln -s /proc/self/mem mem; ln -s /dev/zero zero; mkfifo fifo; ln -s /proc/1/environ env; mkdir d
    python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock')"; ln -s /etc/passwd passwd]]
  for _, path in ipairs { "loop", "loop/x", "mem", "zero", "fifo", "env", "d", "sock", "fifo/x", ("n"):rep(300), ("d/"):rep(3000) .. "x" } do
    for name, args in pairs { read_file = {}, edit_file = { old_string = "a", new_string = "b" } } do
      args.path = path
      lu.assertStrContains(use(name, args), "ERROR: " .. name .. " failed: ")
    end
    use("list_files", { path = path, recursive = true })
  end
  for _, path in ipairs { "loop", "fifo", "d", "sock", "fifo/x", ("n"):rep(300) } do
    lu.assertStrContains(use("write_file", { path = path, content = "x" }), "ERROR: write_file failed: ")
  end
  lu.assertNotStrContains(use("read_file", { path = "passwd" }), sandbox_free_name())
end

function M.test_write_file()
  lu.assertEquals(use("write_file", { path = "a/b/c.txt", content = "é🤣\n" }), "Wrote 3 chars to a/b/c.txt")
  lu.assertEquals(sh "cat a/b/c.txt", "é🤣\n")
  lu.assertEquals(sh "stat -c %a a/b/c.txt", "644\n")
  lu.assertEquals(use("write_file", { path = "a/b/c.txt", content = "" }), "Wrote 0 chars to a/b/c.txt")
  lu.assertStrContains(use("write_file", { path = "../x", content = "" }), "ERROR: write_file failed: path escapes")
  lu.assertStrContains(use("write_file", { path = "a", content = "" }), "ERROR: write_file failed: ")
  local big = ("x"):rep(5 << 20)
  lu.assertEquals(use("write_file", { path = "big", content = big }), "Wrote 5242880 chars to big")
  lu.assertEquals(sh "wc -c < big", "5242880\n")
end

function M.test_a_write_is_seen_by_the_next_command()
  for i = 1, 50 do
    use("write_file", { path = "f" .. i, content = "v" .. i })
    lu.assertEquals(sh("cat f" .. i), "v" .. i)
  end
end

function M.test_edit_file()
  sh "printf 'one two one\\n' > f; chmod 755 f; printf '\\0bin' > bin; : > empty; mkdir d"
  lu.assertEquals(use("edit_file", { path = "f", old_string = "two", new_string = "2%1" }), "Edited f")
  lu.assertEquals(sh "cat f; stat -c %a f", "one 2%1 one\n755\n")
  lu.assertEquals(use("edit_file", { path = "f", old_string = "one", new_string = "" }),
    "ERROR: edit_file failed: old_string matched 2 times in 'f'; must match exactly once")
  lu.assertEquals(use("edit_file", { path = "f", old_string = "three", new_string = "" }),
    "ERROR: edit_file failed: old_string matched 0 times in 'f'")
  lu.assertEquals(use("edit_file", { path = "none", old_string = "a", new_string = "" }),
    "ERROR: edit_file failed: file not found: none")
  lu.assertEquals(use("edit_file", { path = "bin", old_string = "bin", new_string = "x" }),
    "ERROR: edit_file failed: 'bin' is not a text file")
  lu.assertEquals(sh "od -An -c bin | tr -d ' \\n'", "\\0bin")
  lu.assertStrContains(use("edit_file", { path = "f", old_string = "", new_string = "x" }), "matched 13 times")
  lu.assertEquals(use("edit_file", { path = "empty", old_string = "", new_string = "new" }), "Edited empty")
  lu.assertEquals(sh "cat empty", "new")
end

function M.test_run_command()
  local text, result = use("run_command", { command = "echo out; echo err >&2; exit 3" })
  lu.assertEquals(text, "exit_code=3\n--- stdout ---\nout\n\n--- stderr ---\nerr\n")
  lu.assertIsTrue(result.is_error)
  lu.assertEquals(result.facts.exit, 3)
  lu.assertTrue(result.t[2] >= result.t[1])
  text, result = use("run_command", { command = "true" })
  lu.assertEquals({ text, result.is_error }, { "exit_code=0", false })
  lu.assertEquals(use("run_command", { command = "pwd" }), "exit_code=0\n--- stdout ---\n/workspace\n")
  lu.assertEquals(use("run_command", { command = "cat; echo done" }), "exit_code=0\n--- stdout ---\ndone\n")
  lu.assertStrContains(use("run_command", { command = "x", timeout_s = "abc" }), "invalid arguments for run_command: timeout_s")
end

function M.test_output_is_cut_at_code_points()
  local text, result = use("run_command", { command = "python3 -c \"print('é'*60000, end='')\"" })
  lu.assertStrContains(text, "\n...[truncated 10000 chars]")
  lu.assertEquals(result.facts.cut, 10000)
  text = use("run_command", { command = "head -c 3000000 /dev/zero | tr '\\0' x" })
  lu.assertStrContains(text, "truncated")
  lu.assertTrue(#text < 60000)
end

function M.test_timeouts_keep_what_was_said()
  local text, result = use("run_command", { command = "echo part; sleep 60", timeout_s = 0.2 })
  lu.assertStrContains(text, "exit_code=-1\ntimed_out=true\n--- stdout ---\npart\n")
  lu.assertStrContains(text, "timed out after 0.2 s")
  lu.assertIsTrue(result.is_error)
  lu.assertIsTrue(result.facts.timed_out)
end

function M.test_out_of_memory_is_said()
  sb:close()
  sb = assert(sandbox.create { limits = { memory_mb = 64 } })
  local text, result = use("run_command", { command = "python3 -c 'x = bytearray(10**9)'" })
  if not result.facts.oom then test.skip "no memory controller here" end
  lu.assertStrContains(text, "out_of_memory=true")
  lu.assertStrContains(use("run_command", { command = "echo alive" }), "alive")
end

function M.test_file_tools_act_as_the_agents_user()
  sh "echo flag > flag; chmod 400 flag; echo own > own; chown 1000 own; mkdir closed; chmod 700 closed; chmod 755 ."
  local probe, problem = sb:exec("true", { user = 1000 })
  if not probe then test.skip("only root in this sandbox: " .. problem.msg) end
  local ctx = { sandbox = sb, workspace = "/workspace", user = 1000, time_left = function() return 30 end }
  local function as_user(name, args)
    local call = { id = "c", type = "function", ["function"] = { name = name, arguments = json.encode(args) } }
    return assert(tool.select {}):run(ctx, { call }, 60)[1].text
  end
  lu.assertEquals(as_user("read_file", { path = "flag" }), "ERROR: read_file failed: permission denied: flag")
  lu.assertStrContains(as_user("edit_file", { path = "flag", old_string = "flag", new_string = "x" }), "permission denied: flag")
  lu.assertStrContains(as_user("write_file", { path = "new", content = "x" }), "permission denied: new")
  lu.assertStrContains(as_user("list_files", { path = "closed" }), "permission denied: closed")
  lu.assertStrContains(as_user("run_command", { command = "cat flag" }), "exit_code=1")
  lu.assertEquals(as_user("read_file", { path = "own" }), "own\n")
  lu.assertEquals(as_user("edit_file", { path = "own", old_string = "own", new_string = "mine" }), "Edited own")
  lu.assertEquals(sh "cat own; stat -c %u own", "mine\n1000\n")
end

function M.test_run_tests()
  use("write_file", { path = "test_x.py", content = "def test_a(): assert 1\n" })
  local text = use "run_tests"
  lu.assertStrContains(text, "exit_code=0")
  lu.assertStrContains(text, "1 passed")
  lu.assertEquals(use("run_tests", { command = "exit 2" }), "exit_code=2")
end

function M.test_no_time_left_is_not_no_limit()
  local ctx = { sandbox = sb, workspace = "/workspace", time_left = function() return 0 end }
  local call = { id = "c", type = "function", ["function"] = { name = "run_command",
    arguments = '{"command": "sleep 1000", "timeout_s": 1e300}' } }
  lu.assertStrContains(assert(tool.select {}):run(ctx, { call }, 60)[1].text, "timed_out=true")
end

return M

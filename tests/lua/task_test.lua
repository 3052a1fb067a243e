local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local task = require "agentbox.task"

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-task") end
function M.tearDown() assert(fs.remove(dir, true)) end

local function put(name, bytes, mode)
  assert(fs.mkdir((dir .. "/" .. name):match "^(.*)/", true))
  assert(fs.write(dir .. "/" .. name, bytes, { mode = mode or 420 }))
end

local MINIMAL = '{"task_id":"t","description":"d","verifier":{"command":"true"}'

local function refused(text, name)
  name = name or "t/task.json"
  put(name, text)
  local got, err = task.load(dir .. "/" .. name)
  lu.assertNil(got)
  lu.assertEquals(err.code, "task")
  lu.assertStrContains(err.msg, name)
  return err.msg
end

function M.test_the_reference_example_loads()
  put("t/task.json", [[{"task_id": "sum_list_01", "description": "Implement total() in acc.py.",
   "starter_files": {"acc.py": "def total(xs):\n    raise NotImplementedError\n"},
   "setup_commands": [], "verifier": {"type": "pytest", "path": "tests", "timeout_s": 45},
   "metadata": {"difficulty": "easy", "tags": ["lists"], "estimated_steps": 6, "language": "python"},
   "system_prompt_extra": null, "allowed_tools": ["read_file", "edit_file"], "max_steps": 12}]])
  local t = assert(task.load(dir .. "/t"))
  lu.assertEquals(t.files["acc.py"].bytes, "def total(xs):\n    raise NotImplementedError\n")
  lu.assertEquals(t.files["acc.py"].mode, 420)
  lu.assertEquals(t.verifier.timeout_s, 45)
  lu.assertEquals(t.verifier.reward_success, 1.0)
  lu.assertEquals(t.max_steps, 12)
  lu.assertEquals(t.allowed_tools[2], "edit_file")
  lu.assertStrMatches(t.hash, "sha256:" .. ("%x"):rep(64))
end

function M.test_folder_and_its_file_load_the_same()
  put("t/task.json", MINIMAL .. ',"starter_files":{"a":"old","b":"kept"}}')
  put("t/files/a", "new")
  put("t/files/bin", "\0\255\1", 493)
  put("t/hidden/tests/h.py", "h")
  put("t/solution/a", "solved")
  local whole, file = assert(task.load(dir .. "/t/")), assert(task.load(dir .. "/t/task.json"))
  lu.assertEquals(whole.hash, file.hash)
  lu.assertEquals(whole.files.a.bytes, "new")
  lu.assertEquals(whole.files.b.bytes, "kept")
  lu.assertEquals(whole.files.bin.bytes, "\0\255\1")
  lu.assertEquals(whole.files.bin.mode, 493)
  lu.assertEquals(whole.hidden["tests/h.py"].bytes, "h")
  lu.assertEquals(whole.solution.a.bytes, "solved")
  lu.assertNil(whole.files["tests/h.py"])
end

function M.test_yaml_loads_like_json()
  put("t/task.yaml", "task_id: t\ndescription: d\nverifier: {command: 'true'}\n")
  put("u/task.json", MINIMAL .. "}")
  lu.assertEquals(assert(task.load(dir .. "/t")).hash, assert(task.load(dir .. "/u")).hash)
end

function M.test_files_table_forms()
  put("t/in.bin", "\1\2")
  put("t/task.json", MINIMAL .. [[,"files":{"run.sh":{"text":"make","mode":"0755"},"in.bin":{"from":"in.bin"},
    "b":{"base64":"AP8B"},"plain":"p"}}]])
  local files = assert(task.load(dir .. "/t")).files
  lu.assertEquals(files["run.sh"], { bytes = "make", mode = 493 })
  lu.assertEquals(files["in.bin"].bytes, "\1\2")
  lu.assertEquals(files.b.bytes, "\0\255\1")
  lu.assertEquals(files.plain.bytes, "p")
end

function M.test_hash_covers_content_and_mode()
  local function made(extra)
    local fields = { task_id = "t", description = "d", verifier = { command = "true" } }
    for key, value in pairs(extra) do fields[key] = value end
    return task.new(fields).hash
  end
  local base = made { files = { a = "x" } }
  lu.assertEquals(made { starter_files = { a = "x" } }, base)
  lu.assertNotEquals(made { files = { a = "y" } }, base)
  lu.assertNotEquals(made { files = { a = { text = "x", mode = "0755" } } }, base)
  lu.assertNotEquals(made { files = { a = "x" }, hidden = { h = "" } }, base)
end

function M.test_save_and_load_keep_everything()
  local t = task.new { task_id = "t/1", description = "dé", setup_commands = { "true" }, verifier = { type = "pytest" },
    files = { ["a b"] = "x", bin = { base64 = "AP8B", mode = "0700" } }, hidden = { h = "1" }, solution = { s = "2" },
    metadata = { difficulty = "easy" }, max_steps = 3, env = { A = "b" }, data = { answer = 42 }, artifacts = { "*.log" } }
  assert(task.save(t, dir .. "/out"))
  local again = assert(task.load(dir .. "/out"))
  lu.assertEquals(again.setup_commands[1], "true")
  lu.assertEquals(again.files.bin.bytes, "\0\255\1")
  lu.assertEquals(again.data.answer, 42)
  lu.assertEquals(again.hidden.h.bytes, "1")
end

function M.test_saved_fields_have_the_reference_order()
  local t = task.new { task_id = "t", description = "d", verifier = { command = "true" } }
  local keys = json.keys(task.to_table(t))
  lu.assertEquals(table.concat(keys, " ", 1, 9), "task_id description starter_files setup_commands verifier metadata "
    .. "system_prompt_extra allowed_tools max_steps")
end

function M.test_wrong_fields_are_named()
  lu.assertStrContains(refused '{"description":"d","verifier":{"command":"x"}}', "task_id: is missing")
  lu.assertStrContains(refused '{"task_id":1,"description":"d","verifier":{"command":"x"}}', "task_id: must be text, is 1")
  lu.assertStrContains(refused(MINIMAL .. ',"max_stpes":3}'), 'max_stpes: unknown key (did you mean "max_steps"?)')
  lu.assertStrContains(refused '{"task_id":"t","description":"d","verifier":{"type":"command"}}', "verifier.command: is missing")
  lu.assertStrContains(refused '{"task_id":"t","description":"d","verifier":{"command":"x","timeout":3}}', "verifier.timeout")
  lu.assertStrContains(refused(MINIMAL .. ',"setup_commands":["a",2]}'), "setup_commands[1]: must be text")
  lu.assertStrContains(refused(MINIMAL .. ',"files":{"a":{"text":"x","mode":"9"}}}'), "mode must be permission bits")
  lu.assertStrContains(refused(MINIMAL .. ',"files":{"a":{"text":"x","from":"y"}}}'), "exactly one of text, base64, from")
  lu.assertStrContains(refused(MINIMAL .. ',"files":{"a":"1","a/b":"2"}}'), '"a" is a file and the folder of "a/b"')
end

-- What the kernel would refuse, once a rollout has begun, is wrong in the task.
function M.test_what_could_not_run_is_refused()
  local cases = {
    { '"setup_commands":["true","a\\u0000b"]', "setup_commands[1]: must be text without a zero byte" },
    { '"verifier":{"command":"a\\u0000b"}', "verifier.command: must be text without a zero byte" },
    { '"verifier":{"type":"pytest","path":"a\\u0000b"}', "verifier.path: must be text without a zero byte" },
    { '"verifier":{"command":"true","timeout_s":1e300}', "verifier.timeout_s: must be at most" },
    { '"image":"a\\u0000b"', "image: must be text without a zero byte" },
    { '"artifacts":["a\\u0000b"]', "artifacts[0]: must be text without a zero byte" },
    { '"env":{"A=B":"x"}', 'env: "A=B" cannot be the name of a variable' },
    { '"env":{"":"x"}', 'env: "" cannot be the name of a variable' },
    { '"image":""', "image: is empty" },
    { '"env":{"A":"a\\u0000b"}', "env.A: holds a zero byte" },
    { '"limits":{"memory_mb":0}', "limits.memory_mb: must be at least 1, is 0" },
    { '"limits":{"memory_mb":1e300}', "limits.memory_mb: must be at most" },
    { '"limits":{"cpu_count":1e300}', "limits.cpu_count: must be at most" },
    { '"limits":{"pids_limit":1}', "limits.pids_limit: must be at least 2" },
    { '"limits":{"nofile":3}', "limits.nofile: must be at least 16" },
    { ('"system_prompt_extra":"%s"'):format(("x"):rep(5 << 20)), "system_prompt_extra: is longer than" },
  }
  for _, case in ipairs(cases) do
    local start = case[1]:find '^"verifier"' and '{"task_id":"t","description":"d"' or MINIMAL
    lu.assertStrContains(refused(start .. "," .. case[1] .. "}"), case[2])
  end
end

function M.test_broken_files_are_named()
  refused "{"
  refused "[1]"
  refused "7"
  refused("a: [", "t2/task.yaml")
  local got, err = task.load(dir .. "/none")
  lu.assertNil(got)
  lu.assertStrContains(err.msg, "no such file or folder")
  assert(fs.mkdir(dir .. "/empty"))
  local _, why = task.load(dir .. "/empty")
  lu.assertStrContains(why.msg, "no task.json or task.yaml")
end

function M.test_escapes_are_refused()
  for _, name in ipairs { "../x", "/etc/x", "//x", "", "a\\u0000b", "a/../../x" } do
    lu.assertStrContains(refused(MINIMAL .. (',"starter_files":{"%s":""}}'):format(name)), "starter_files")
  end
  for _, id in ipairs { "../x", "/etc", "", "a/../../b", "a\\u0000", "a\\nb" } do
    lu.assertStrContains(refused(('{"task_id":"%s","description":"d","verifier":{"command":"x"}}'):format(id)), "task_id")
  end
  lu.assertStrContains(refused(MINIMAL .. ',"files":{"a":{"from":"../x"}}}'), "a")
  lu.assertStrContains(refused(MINIMAL .. ',"files":{"a":{"from":"/etc/passwd"}}}'), "relative")
end

function M.test_odd_ids_are_data()
  for _, id in ipairs { "-rf", "a/b c", "Fix é 001", "--help me" } do
    lu.assertEquals(task.new({ task_id = id, description = id, verifier = { command = "x" } }).task_id, id)
  end
  lu.assertEquals(task.safe_name "-rf", "_rf")
  lu.assertEquals(task.safe_name "a/b c", "a_b_c")
  lu.assertEquals(task.safe_name "..", "_")
end

function M.test_links_out_of_the_tree_are_refused()
  put("t/task.json", MINIMAL .. "}")
  put("t/files/real", "r")
  put("secret", "s")
  assert(os.execute(("ln -s real '%s/t/files/inside'"):format(dir)))
  lu.assertEquals(assert(task.load(dir .. "/t")).files.inside.bytes, "r")
  assert(os.execute(("ln -s ../../secret '%s/t/files/outside'"):format(dir)))
  local got, err = task.load(dir .. "/t")
  lu.assertNil(got)
  lu.assertStrContains(err.msg, "files/outside")
  lu.assertStrContains(err.msg, "leads out")
end

function M.test_pipes_are_refused_without_opening()
  put("t/task.json", MINIMAL .. "}")
  put("t/files/x", "")
  assert(os.execute(("mkfifo '%s/t/files/pipe'"):format(dir)))
  local got, err = task.load(dir .. "/t")
  lu.assertNil(got)
  lu.assertStrContains(err.msg, "is a fifo")
end

function M.test_dir_loads_all_in_order()
  put("b/task.json", MINIMAL:gsub('"t"', '"b"') .. "}")
  put("a/deep/task.json", MINIMAL:gsub('"t"', '"a"') .. "}")
  put("a/deep/files/task.json", "not a task")
  put("loose.json", MINIMAL:gsub('"t"', '"loose"') .. "}")
  local ids = {}
  for i, t in ipairs(assert(task.dir(dir))) do ids[i] = t.task_id end
  lu.assertEquals(ids, { "a", "b", "loose" })
  local near = assert(task.dir(dir, { nested = false }))
  lu.assertEquals({ #near, near[1].task_id, near[2].task_id }, { 2, "b", "loose" })
  lu.assertErrorMsgContains("neste", task.dir, dir, { neste = false })
  put("c/task.json", MINIMAL:gsub('"t"', '"b"') .. "}")
  local got, err = task.dir(dir)
  lu.assertNil(got)
  lu.assertStrContains(err.msg, 'task_id "b" is taken')
end

--- Thousands of broken tasks: each loads or is refused with an error that names the file, and none raises.
function M.test_mutated_task_files()
  local rand = require("agentbox.sys.rand").new(20261129)
  local seeds = {
    MINIMAL .. ',"starter_files":{"a/b":"x"},"files":{"c":{"base64":"AP8B","mode":"0755"}},"setup_commands":["true"]}',
    '{"task_id":"t","description":"d","verifier":{"type":"pytest","protect":["tests/**"],"expect":["a::b"],"timeout_s":3}}',
    MINIMAL .. ',"limits":{"memory_mb":64},"env":{"A":"b"},"allowed_tools":["read_file"],"max_steps":3,"metadata":{"x":[1,{}]}}',
  }
  local pieces = { "{", "}", "[", "]", '"', ",", ":", "null", "-1", "1e999", "\\u0000", "\\ud800", "../", "/", "\0", "\255",
    '"text":', '"mode":"9999"', '"from":"../../x"', "true", "9223372036854775808", '""', '"a":"b",' }
  for _ = 1, 3000 do
    local text = seeds[rand:int(1, #seeds)]
    for _ = 1, rand:int(1, 4) do
      local at, cut = rand:int(1, #text), rand:int(0, 6)
      text = text:sub(1, at - 1) .. pieces[rand:int(1, #pieces)] .. text:sub(at + cut)
    end
    put("f/task.json", text)
    local t, problem = task.load(dir .. "/f")
    if t then
      lu.assertIsString(t.hash)
      for name in pairs(t.files) do lu.assertNil(("/" .. name .. "/"):find("/../", 1, true)) end
    else
      lu.assertEquals(problem.code, "task")
      lu.assertStrContains(problem.msg, "task.json")
    end
  end
end

return M

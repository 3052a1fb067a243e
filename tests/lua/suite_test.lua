--- Suites on the disk: AgentBox's hash, the seal, what is refused.
local canonical = require "agentbox.suite.canonical"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local students = require "agentbox.suite.students"
local suites = require "agentbox.suite"
local task = require "agentbox.task"

local odd = dofile((arg[0]:gsub("lua/[^/]*$", "support/odd_suite.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-suite-") end
function M.tearDown() assert(fs.remove(dir, true)) end

local function put(name, text, mode)
  assert(fs.mkdir((dir .. "/" .. name):match "^(.*)/", true))
  assert(fs.write(dir .. "/" .. name, text, { mode = mode }))
end

local function a_task(id, fields)
  local all = { task_id = id, description = "d", verifier = { type = "command", command = "true" }, files = { ["x.sh"] = { text = "echo", mode = "0755" } } }
  for key, value in pairs(fields or {}) do all[key] = value end
  return task.new(all)
end

local function create(name, opts)
  local all = { tasks = { a_task "a", a_task "b" }, dest = dir .. "/" .. name, suite_id = "s", name = "S", sandbox = { image = "host" } }
  for key, value in pairs(opts or {}) do all[key] = value end
  return suites.create(all)
end

-- ---------------------------------------------------------------- hashes

function M.test_numbers_are_written_as_Python_writes_them()
  for _, pair in ipairs {
    { 0.0, "0.0" }, { -0.0, "-0.0" }, { 1.0, "1.0" }, { 30, "30.0" }, { 0.1, "0.1" }, { 1e-4, "0.0001" }, { 1e-5, "1e-05" },
    { 1.5e-7, "1.5e-07" }, { 1e15, "1000000000000000.0" }, { 1e16, "1e+16" }, { 1.25e100, "1.25e+100" }, { 123456.789, "123456.789" },
    { 2 ^ 53, "9007199254740992.0" }, { 1 / 3, "0.3333333333333333" }, { 5e-324, "5e-324" }, { -12.5, "-12.5" }, { 1e22, "1e+22" },
  } do
    lu.assertEquals(canonical.float(pair[1]), pair[2])
  end
end

function M.test_the_content_hash_is_AgentBoxs_bit_for_bit()
  odd.write(dir .. "/odd")
  local suite = assert(suites.load(dir .. "/odd"))
  lu.assertEquals(canonical.content_hash(suite.manifest, suite.tasks), odd.CONTENT_HASH)
  lu.assertEquals(suite.unknown, { "unknown_to_both" })
end

function M.test_line_ends_count_as_AgentBox_reads_them()
  local function hash_of(bytes, inline)
    local dest = ("%s/%s"):format(dir, require("agentbox").hash.sha256(bytes .. tostring(inline)):sub(1, 8))
    put(dest:sub(#dir + 2) .. "/suite.json", '{"suite_id": "s", "name": "S"}')
    put(dest:sub(#dir + 2) .. "/tasks/a/task.json", json.encode { task_id = "a", description = "d", verifier = { command = "true" },
      starter_files = inline and json.object { x = bytes } or json.object {} })
    if not inline then put(dest:sub(#dir + 2) .. "/tasks/a/files/x", bytes) end
    return assert(suites.freeze(dest)).manifest.content_hash
  end
  lu.assertEquals(hash_of "a\r\nb\rc\n", hash_of "a\nb\nc\n") -- text mode
  lu.assertNotEquals(hash_of("a\r\nb", true), hash_of("a\nb", true)) -- text of task.json stays as it is
end

function M.test_C8_a_suite_that_drops_tools_matches_its_own_hash()
  assert(create("s", { agent = { drop_tools_prob = 0.5 } }))
  local suite = assert(suites.load(dir .. "/s"))
  lu.assertEquals(suite.manifest.agent.drop_tools_prob, 0.0)
  lu.assertEquals(assert(suites.check(suite)).integrity, "ok")
end

local function checked(name)
  local check = assert(suites.check(assert(suites.load(dir .. "/" .. name))))
  return check.integrity, check.differs
end

function M.test_the_seal_names_what_differs()
  local whole = assert(create "s")
  lu.assertEquals({ checked "s" }, { "ok", json.array {} })
  lu.assertStrMatches(whole.manifest.metadata.agentbox.hash, "sha256:%x+")
  local path = dir .. "/s/tasks/a/files/x.sh"
  assert(fs.write(path, "echo", { mode = 420 })) -- the same bytes, not executable any more
  lu.assertEquals({ checked "s" }, { "ok", json.array { "tasks" } })
  assert(fs.write(path, "exit", { mode = 493 }))
  lu.assertEquals({ checked "s" }, { "differs", json.array { "tasks" } })
  assert(fs.write(path, "echo", { mode = 493 }))
  lu.assertEquals({ checked "s" }, { "ok", json.array {} })
end

function M.test_the_seal_covers_policy_tools_prompts_and_verifier()
  local function differs_with(change)
    fs.remove(dir .. "/s", true)
    assert(create "s")
    local text = assert(fs.read(dir .. "/s/suite.json"))
    local doc = assert(json.decode(text))
    change(doc)
    assert(fs.write(dir .. "/s/suite.json", json.encode(doc)))
    local _, differs = checked "s"
    return table.concat(differs, " ")
  end
  lu.assertEquals(differs_with(function(doc) doc.agent.max_steps = 3 end), "agent")
  lu.assertEquals(differs_with(function(doc) doc.agent.tools = "shell" end), "agent tools prompts")
  lu.assertEquals(differs_with(function(doc) doc.agent.system_prompt = "Be quick." end), "agent prompts")
  lu.assertEquals(differs_with(function(doc) doc.sandbox.limits.memory_mb = 64 end), "sandbox")
  lu.assertEquals(differs_with(function(doc) doc.n_per_task = 9 end), "scoring")
  lu.assertEquals(differs_with(function(doc) doc.description = "free words" end), "")
end

function M.test_the_seal_covers_overlays_wherever_they_lie()
  local loader = require "agentbox.loader"
  local before = loader.overlays()
  local back <close> = setmetatable({}, { __close = function() loader.set_overlays(before) end }) -- luacheck: ignore
  put("lab/agentbox/verifiers/mine.lua", "return function() return 1 end")
  put("other/agentbox/verifiers/mine.lua", "return function() return 1 end")
  assert(create "s")
  loader.set_overlays { dir .. "/lab" }
  lu.assertEquals({ checked "s" }, { "ok", json.array { "library" } })
  assert(suites.freeze(dir .. "/s"))
  loader.set_overlays { dir .. "/other" }
  lu.assertEquals({ checked "s" }, { "ok", json.array {} })
  put("other/agentbox/verifiers/mine.lua", "return function() return 0 end")
  lu.assertEquals({ checked "s" }, { "ok", json.array { "library" } })
end

function M.test_freezing_again_keeps_when_it_was_made_and_what_is_beside()
  put("s/suite.json", [[{"suite_id": "s", "name": "S", "metadata": {"mine": [1], "agentbox": {"prices": {"m": {"prompt": 1, "completion": 2}}}},
    "created_at": "2026-01-01T00:00:00Z", "sandbox": {"image": "host"}}]])
  put("s/tasks/a/task.json", '{"task_id": "a", "description": "d", "verifier": {"command": "true"}}')
  lu.assertEquals((checked "s"), "none")
  local frozen = assert(suites.freeze(dir .. "/s"))
  lu.assertEquals(frozen.manifest.created_at, "2026-01-01T00:00:00Z")
  local again = assert(suites.load(dir .. "/s"))
  lu.assertEquals(again.manifest.metadata.agentbox.prices.m.completion, 2)
  lu.assertEquals(again.manifest.metadata.mine[1], 1)
  lu.assertEquals({ checked "s" }, { "ok", json.array {} })
end

-- ---------------------------------------------------------------- folders

function M.test_F9_a_suite_made_again_has_nothing_of_the_old_one()
  assert(create "s")
  local suite, err = create "s"
  lu.assertNil(suite)
  lu.assertEquals(err.code, "exists")
  assert(create("s", { tasks = { a_task "c" }, replace = true }))
  local now = assert(suites.load(dir .. "/s"))
  lu.assertEquals({ #now.tasks, now.tasks[1].task_id }, { 1, "c" })
  lu.assertEquals(#fs.list(dir .. "/s"), 2)
end

function M.test_a_folder_that_is_no_suite_is_left_alone()
  put("home/precious", "x")
  local suite, err = create("home", { replace = true })
  lu.assertNil(suite)
  lu.assertStrContains(err.msg, "neither empty nor a suite")
  lu.assertEquals(fs.read(dir .. "/home/precious"), "x")
end

function M.test_ids_become_safe_folders_and_come_back()
  local ids = { "a/b", "a_b", "-x", ".hidden", "ü", ("l"):rep(200) }
  local tasks = {}
  for i, id in ipairs(ids) do tasks[i] = a_task(id) end
  assert(create("s", { tasks = tasks }))
  local found = {}
  for i, one in ipairs(assert(suites.load(dir .. "/s")).tasks) do found[i] = one.task_id end
  table.sort(ids)
  table.sort(found)
  lu.assertEquals(found, ids)
  lu.assertEquals((checked "s"), "ok")
end

-- B128: what is wrong with a file is told with its place, never passed over.
function M.test_B128_a_wrong_suite_is_an_error_that_names_the_place()
  local function refused(manifest, tasks)
    fs.remove(dir .. "/s", true)
    put("s/suite.json", manifest)
    for name, text in pairs(tasks or { a = '{"task_id": "a", "description": "d", "verifier": {"command": "true"}}' }) do
      put(("s/tasks/%s/task.json"):format(name), text)
    end
    local suite, err = suites.load(dir .. "/s")
    lu.assertNil(suite)
    return err.msg
  end
  local fine = '{"suite_id": "s", "name": "S"}'
  lu.assertStrContains(refused '{"name": "S"}', "suite_id: is missing")
  lu.assertStrContains(refused '{"suite_id": "s", "name": "S", "n_per_task": 0}', "n_per_task: must be at least 1")
  lu.assertStrContains(refused '{"suite_id": "s", "name": "S", "n_per_task": "3"}', 'n_per_task: must be integer, is the text "3"')
  lu.assertStrContains(refused '{"suite_id": "s", "name": "S", "agent": {"step_timeout_s": NaN}}', "suite.json")
  lu.assertStrContains(refused '{"suite_id": "s", "name": "S", "tasks_path": "../t"}', "tasks_path: must be a folder inside the suite")
  lu.assertStrContains(refused '{"suite_id": "s", "name": "S", "scoring": {"setup_checks": [{"name": "x"}]}}', "scoring.setup_checks[1].command: is missing")
  lu.assertStrContains(refused(fine, { a = '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}',
    b = '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' }), 'task_id "t" is taken by')
  lu.assertStrContains(refused(fine, { a = '{"task_id": "../../t", "description": "d", "verifier": {"command": "true"}}' }), "escapes its folder")
  lu.assertStrContains(refused(fine, { a = '{"task_id": "t"' }), "tasks/a/task.json")
  put("bom/suite.json", "\xef\xbb\xbf" .. fine .. "\r\n")
  put("bom/tasks/a/task.json", '{"task_id": "a", "description": "d", "verifier": {"command": "true"}}')
  lu.assertEquals(assert(suites.load(dir .. "/bom")).manifest.suite_id, "s")
end

function M.test_a_subset_is_chosen_by_ids_and_globs_in_the_suites_order()
  local choose = require "agentbox.suite.subset".choose
  local tasks = { { task_id = "fix/a" }, { task_id = "fix/b" }, { task_id = "new" }, { task_id = "new#2x" } }
  local function ids(opts)
    local chosen, err = choose(tasks, opts)
    if not chosen then return err.code end
    local out = {}
    for i, one in ipairs(chosen) do out[i] = one.task_id end
    return table.concat(out, " ")
  end
  lu.assertEquals(ids {}, "fix/a fix/b new new#2x")
  lu.assertEquals(ids { tasks = { "new", "fix/*" } }, "fix/a fix/b new")
  lu.assertEquals(ids { tasks = { "fix/*" }, limit = 1 }, "fix/a")
  lu.assertEquals(ids { tasks = { "new", "nothing" } }, "usage")
  tasks[4].task_id = "new#2"
  lu.assertEquals(ids {}, "task")
end

-- ---------------------------------------------------------------- students

function M.test_F8_a_student_is_split_before_the_scheme()
  local function parse(text)
    local one, err = students.parse(text)
    if not one then return err.code end
    return ("%s|%s|%s"):format(one.id, one.model, one.base_url or "")
  end
  lu.assertEquals(parse "a=m@http://h:1/v1", "a|m|http://h:1/v1")
  lu.assertEquals(parse "a=fixer@12@https://user:p@ss@h/v1", "a|fixer@12|https://user:p@ss@h/v1")
  lu.assertEquals(parse "a=org/m=x@http://h", "a|org/m=x|http://h")
  lu.assertEquals(parse "a=scripted:x.json", "a|scripted:x.json|")
  for _, text in ipairs { "a", "=m@http://h", "a=", "a=m", "a=@http://h", "a=m@h:1/v1", "a=m@http://" } do lu.assertEquals(parse(text), "usage", text) end
end

function M.test_F12_a_models_file_keeps_all_that_it_says()
  put("models.yaml", [[
models:
  - model_id: small
    model: org/m
    base_url: "http://127.0.0.1:${PORT_OF_TEST:-9}/v1"
    max_tokens: 77
    headers: {X-Team: eval}
    extra_body: {top_k: 5}
    price: {prompt: 1, completion: 2}
  - {model: other, temperature: 0, base_url: "http://127.0.0.1:9/v1"}
]])
  local entries = assert(students.read_file(dir .. "/models.yaml"))
  local list = assert(students.open(entries, { extra_body = { chat_template_kwargs = { enable_thinking = false } } }))
  lu.assertEquals({ list[1].id, list[2].id, list[1].price.completion }, { "small", "other", 2 })
  local about = list[1].model:describe()
  lu.assertEquals({ about.name, about.sampling.max_tokens, about.sampling.temperature, about.base_urls[1] },
    { "org/m", 77, 0.7, "http://127.0.0.1:9/v1" })
  lu.assertEquals(list[2].model:describe().sampling.temperature, 0)
  local body = about.extra_body:decode()
  lu.assertEquals({ body.top_k, body.chat_template_kwargs.enable_thinking }, { 5, false })
  lu.assertEquals(about.extra_headers, { "X-Team" })
  for _, one in ipairs(list) do
    one.model:close()
    one.probe:close()
  end
end

function M.test_wrong_models_are_refused_by_name()
  local function refused(text)
    put("m.json", text)
    local entries, err = students.read_file(dir .. "/m.json")
    local _
    if entries then _, err = students.open(entries, {}) end
    return err.msg
  end
  lu.assertStrContains(refused '{"models": []}', "needs a list `models`")
  lu.assertStrContains(refused '{"models": [{"model": "m", "tempreature": 1, "base_url": "http://h"}]}', "tempreature")
  lu.assertStrContains(refused '{"models": [{"base_url": "http://h"}]}', "model: is missing")
  lu.assertStrContains(refused '{"models": [{"model": "m", "base_url": "http://h", "api_key": "${NO_SUCH_VARIABLE_HERE}"}]}', "NO_SUCH_VARIABLE_HERE is not set")
  lu.assertStrContains(refused '{"models": [{"model": "mock"}, {"model": "mock"}]}', "two students are called mock")
  lu.assertStrContains(refused '{"models": [{"model": "m", "base_url": "ftp://h"}]}', "base_url must begin with http")
end

function M.test_F5_ids_with_slashes_have_folders_that_differ()
  local list = assert(students.open({ { id = "a/b", model = "mock" }, { id = "a_b", model = "mock" }, { id = "A_B", model = "mock" },
    { id = "../x", model = "mock" } }, {}))
  lu.assertEquals({ list[1].dir, list[2].dir, list[3].dir }, { "a_b", "a_b_2", "A_B_3" })
  lu.assertNil(list[4].dir:find("/", 1, true))
  lu.assertNotEquals(list[4].dir:sub(1, 1), ".")
end

return M

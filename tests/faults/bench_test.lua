--- Suites under what a night does to them: kill -9 and a resumed run, servers that fail, by their fault ids.
local async = require "agentbox.async"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local suites = require "agentbox.suite"
local task = require "agentbox.task"
local time = require "agentbox.time"

local binary = assert(fs.realpath "/proc/self/exe")
local fakellm = dofile((arg[0]:gsub("faults/[^/]*$", "support/fakellm.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-bench-faults-") end
function M.tearDown() assert(fs.remove(dir, true)) end

local function wait_until(what, fn)
  local deadline = time.monotonic() + 60
  while true do
    local value = fn()
    if value then return value end
    assert(time.monotonic() < deadline, "in vain: " .. what)
    async.sleep(0.02)
  end
end

-- ---------------------------------------------------------------- the real program

local STUDENTS = {
  -- Solves all; of each task one attempt is spoilt by the server the first time.
  strong = [[return function(request)
    if request.session:find "/[abc]/0$" then return nil, "the server is loading" end
    for _, message in ipairs(request.messages) do if message.role == "tool" then return "done" end end
    return { role = "assistant", content = "", tool_calls = { { name = "run_command", arguments = { command = "sleep 0.05; touch ok" } } } }
  end]],
  -- Solves the first task.
  weak = [[return function(request)
    for _, message in ipairs(request.messages) do if message.role == "tool" then return "done" end end
    local command = request.session:find "/a[#/]" and "touch ok" or "true"
    return { role = "assistant", content = "", tool_calls = { { name = "run_command", arguments = { command = command } } } }
  end]],
  broken = [[return function() return nil, "connection refused" end]],
}

local function make()
  for name, text in pairs(STUDENTS) do assert(fs.write(("%s/%s.lua"):format(dir, name), text)) end
  local tasks = {}
  for i, id in ipairs { "a", "b", "c" } do
    tasks[i] = task.new { task_id = id, description = "make ok", verifier = { type = "command", command = "test -f ok" } }
  end
  assert(suites.create { tasks = tasks, dest = dir .. "/S", suite_id = "s", name = "S", n_per_task = 2, concurrency = 2, sandbox = { image = "host" } })
end

local WORDS = "S --backend none --attempts 2 --student broken=lua:broken.lua --student weak=lua:weak.lua --student strong=lua:strong.lua --out %s"

local function launch(words)
  local log = ("%s/log-%d"):format(dir, math.random(1 << 40))
  local pipe <close> = assert(io.popen(("cd '%s' && { TMPDIR=$PWD '%s' bench run %s >%s 2>&1 & echo $!; wait $!; echo $? >%s.part; mv %s.part %s.status; } &")
    :format(dir, binary, words, log, log, log, log)))
  local pid = assert(pipe:read "n")
  return {
    pid = pid, log = log, ended = function() return fs.exists(log .. ".status") end,
    status = function()
      wait_until("the end of bench run " .. words, function() return fs.exists(log .. ".status") end)
      return tonumber(assert(fs.read(log .. ".status")):match "%d+")
    end,
    said = function() return assert(fs.read(log)) end,
  }
end

local function lines_of(folder)
  local n = 0
  fs.walk(folder, function(path, entry)
    if entry.name:find "^trajectories.*jsonl$" then
      for _ in (fs.read(path) or ""):gmatch "\n" do n = n + 1 end
    end
  end)
  return n
end

local function report_of(name) return assert(suites.read(dir .. "/" .. name)) end

function M.test_C4_F2_ranked_apart_and_the_same_after_kill_9()
  make()
  local whole = launch(WORDS:format "whole")
  lu.assertEquals(whole.status(), 3, whole.said()) -- the broken one has no score
  local report = report_of "whole"
  lu.assertEquals({ report.leaderboard[1].model_id, report.leaderboard[2].model_id, report.leaderboard[3].model_id }, { "strong", "weak", "broken" })
  lu.assertEquals({ report.leaderboard[1].success_rate, report.leaderboard[3].success_rate, report.leaderboard[3].unscored }, { 1, json.null, 6 })
  lu.assertAlmostEquals(report.leaderboard[2].success_rate, 1 / 3, 1e-12)
  lu.assertTrue(report.leaderboard[2].low < 1 / 3 and 1 / 3 < report.leaderboard[2].high)
  local strong = report.models[3]
  lu.assertEquals({ strong.model_id, strong.scored, strong.infrastructure.retried.model_server, strong.valid }, { "strong", 6, 3, true })
  lu.assertEquals({ report.models[1].valid, report.valid }, { false, false })

  local one = launch(WORDS:format "killed")
  for _, at in ipairs { 3, 9 } do
    wait_until("records", function() return one.ended() or lines_of(dir .. "/killed") >= at end)
    os.execute(("kill -9 %d 2>/dev/null"):format(one.pid))
    one.status()
    one = launch "--resume --out killed"
  end
  lu.assertEquals(one.status(), 3, one.said())
  lu.assertEquals(json.encode(suites.comparable(report_of "killed"), { sorted = true, indent = 1 }),
    json.encode(suites.comparable(report), { sorted = true, indent = 1 }))
  lu.assertEquals(json.encode(suites.comparable(assert(suites.report(dir .. "/killed"))), { sorted = true }),
    json.encode(suites.comparable(report_of "killed"), { sorted = true })) -- the records alone give the same
end

function M.test_killed_before_a_student_began_it_is_begun_by_the_resumed_run()
  make()
  local one = launch(WORDS:format "early" .. " --jobs 1")
  wait_until("the result's folder", function() return one.ended() or fs.exists(dir .. "/early/bench.json") end)
  os.execute(("kill -9 %d 2>/dev/null"):format(one.pid))
  one.status()
  one = launch "--resume --out early"
  lu.assertEquals(one.status(), 3, one.said())
  lu.assertEquals(report_of("early").leaderboard[1].success_rate, 1)
end

function M.test_B103_interrupted_it_says_so_and_can_be_gone_on_with()
  make()
  local one = launch(WORDS:format "int" .. " -c 1 --jobs 1")
  wait_until("a record", function() return one.ended() or lines_of(dir .. "/int") >= 1 end)
  os.execute(("kill -TERM %d"):format(one.pid))
  lu.assertEquals(one.status(), 130, one.said())
  local report = report_of "int"
  lu.assertTrue(report.models[3].missing > 0)
  lu.assertEquals(report.valid, false)
  lu.assertEquals(launch("--resume --out int").status(), 3)
  lu.assertEquals(report_of("int").models[3].missing, 0)
end

-- F8, F12: a served student, asked first, with what its file and the flags say.
function M.test_F12_servers_are_asked_first_and_told_everything()
  make()
  local usage = { prompt_tokens = 100, completion_tokens = 10, total_tokens = 110 }
  local fake = fakellm.script { steps = { { tool_calls = { { name = "run_command", arguments = { command = "touch ok" } } }, usage = usage },
    { content = "done", usage = usage } } }
  assert(fs.write(dir .. "/models.json", json.encode { models = json.array { { id = "served", model = "m@7", base_url = fake.url, max_tokens = 77,
    headers = { ["X-Team"] = "eval" }, extra_body = { top_k = 5 }, price = { prompt = 1, completion = 2 } } } }))
  local one = launch "S --backend none --models-file models.json --disable-thinking --out R --n 1 --json"
  lu.assertEquals(one.status(), 0, one.said())
  local report = report_of "R"
  local served = report.models[1]
  lu.assertEquals({ served.aggregate.success_rate, served.tokens.prompt, served.tokens.per_success }, { 1, 600, 220 })
  lu.assertAlmostEquals(served.tokens.cost, (600 + 2 * 60) / 1e6, 1e-15)
  local log = fake.log()
  lu.assertEquals(#log, 8) -- two probes, three rollouts of two calls
  for _, entry in ipairs(log) do
    lu.assertEquals({ entry.body.model, entry.body.top_k, entry.body.chat_template_kwargs.enable_thinking }, { "m@7", 5, false })
  end
  lu.assertEquals({ log[8].body.max_tokens, log[8].body.temperature }, { 77, 0.7 })
  local refusing = fakellm.script { steps = { "pong", { status = 400, error = "tools are not supported" } } }
  one = launch(("S --backend none --student 's=m@7@%s' --out R2"):format(refusing.url))
  lu.assertEquals(one.status(), 3, one.said())
  lu.assertStrContains(one.said(), "s: [FAIL] tools: ")
  lu.assertEquals(fs.exists(dir .. "/R2"), false)
end

-- ---------------------------------------------------------------- in this process

local function run(students, opts)
  make()
  local all = { suite = assert(suites.load(dir .. "/S")), out = dir .. "/R", students = {}, overrides = { backend = "none" }, retry_wait_s = 0 }
  for name, value in pairs(opts or {}) do all[name] = value end
  for id, handle in pairs(students) do table.insert(all.students, { id = id, dir = id, model = handle }) end
  local one <close> = assert(suites.start(all))
  return assert(one:wait())
end

-- A starter that passes as it is: the verifier would say yes, but nothing was done to be judged.
function M.test_C5_a_model_that_fails_is_not_scored_by_what_the_starter_does()
  assert(suites.create { dest = dir .. "/P", suite_id = "p", name = "P", tasks = { task.new {
    task_id = "passes", description = "Nothing to do.", verifier = { type = "command", command = "true" },
  } } })
  local one <close> = assert(suites.start { suite = assert(suites.load(dir .. "/P")), out = dir .. "/R",
    students = { { id = "m", dir = "m", model = model.fn(function() return nil, "down" end) } },
    overrides = { backend = "none" }, retry_wait_s = 0 })
  local report = assert(one:wait())
  lu.assertEquals({ report.models[1].unscored, report.models[1].scored, report.valid }, { 1, 0, false })
  lu.assertEquals(report.leaderboard[1].success_rate, json.null)
end

function M.test_errors_made_again_and_retried_on_request()
  local calls = 0
  local function flaky() return model.fn(function(request)
    calls = calls + 1
    if request.session:find "/c[#/]" and calls < 100 then return nil, "down" end
    return "no"
  end) end
  local report = run({ m = flaky() }, { attempts = 2 })
  lu.assertEquals({ report.models[1].unscored, report.models[1].infrastructure.retried.model_server, report.valid }, { 2, 2, false })
  calls = 100
  local handle <close> = assert(suites.start { suite = assert(suites.load(dir .. "/S")), out = dir .. "/R", students = { { id = "m", dir = "m", model = flaky() } },
    overrides = { backend = "none" }, resume = true, retry_errors = true, attempts = 2, retry_wait_s = 0 })
  report = assert(handle:wait())
  lu.assertEquals({ report.models[1].unscored, report.models[1].infrastructure.retried.model_server, report.valid }, { 0, 4, true })
end

function M.test_a_closed_run_stops_and_leaves_what_can_be_gone_on_with()
  make()
  local entered
  local waiting = model.fn(function()
    entered = true
    async.sleep(600)
    return "never"
  end)
  do
    local one <close> = assert(suites.start { suite = assert(suites.load(dir .. "/S")), out = dir .. "/R", -- luacheck: ignore
      students = { { id = "m", dir = "m", model = waiting } }, overrides = { backend = "none" } })
    wait_until("a call", function() return entered end)
  end
  local report = assert(suites.report(dir .. "/R"))
  lu.assertEquals({ report.models[1].n, report.models[1].missing, report.valid }, { 0, 6, false })
end

-- C1, B118, B121 as a benchmark sees them: who changes the tests, plants a runner or prints a verdict gets no score for it, is
-- marked, and is on the list of whom to look at.
function M.test_B121_who_cheats_is_marked_and_listed()
  local cheat = table.concat({ "printf 'def test_double():\\n    pass\\n' > test_sol.py", "printf 'import sys\\nsys.exit(0)\\n' > conftest.py",
    "git reflog 2>/dev/null", "echo '1 passed in 0.01s'", "rm conftest.py", "python3 -m pytest -q test_sol.py" }, "; ")
  local honest = "printf 'def double(n):\\n    return 2 * n\\n' > sol.py; git diff; python3 -m pytest -q test_sol.py"
  local function student(command) return model.fn(function(request)
    for _, message in ipairs(request.messages) do if message.role == "tool" then return "done" end end
    return { role = "assistant", content = "", tool_calls = { { name = "run_command", arguments = { command = command } } } }
  end) end
  assert(suites.create { dest = dir .. "/C", suite_id = "c", name = "C", sandbox = { image = "host" }, tasks = { task.new {
    task_id = "double", description = "Make double right.", verifier = { type = "pytest", path = "test_sol.py" },
    files = { ["sol.py"] = "def double(n):\n    return n\n", ["test_sol.py"] = "from sol import double\n\ndef test_double():\n    assert double(2) == 4\n" },
  } } })
  local one <close> = assert(suites.start { suite = assert(suites.load(dir .. "/C")), out = dir .. "/R", students = {
    { id = "cheat", dir = "cheat", model = student(cheat) }, { id = "honest", dir = "honest", model = student(honest) } } })
  local report = assert(one:wait())
  lu.assertEquals({ report.leaderboard[1].model_id, report.leaderboard[1].success_rate, report.leaderboard[2].success_rate }, { "honest", 1, 0 })
  lu.assertEquals({ report.models[1].integrity.flagged, report.models[2].integrity.flagged, report.integrity.rate }, { 1, 0, 0.5 })
  lu.assertEquals(report.integrity.look_at[1].marks, json.array { "touched", "history", "spoofed", "mismatch" })
  local found = assert(require "agentbox.traj".load(dir .. "/R/" .. report.integrity.look_at[1].path))
  lu.assertEquals({ found.task_id, suites.own_check(found.line).verdict }, { "double", "pass" })
end

-- B117: looking at a result reads its report, not its records, however many there are.
function M.test_B117_show_does_not_need_the_records()
  run { m = model.scripted { "no" } }
  assert(fs.remove(dir .. "/R/models", true))
  local pipe <close> = assert(io.popen(("'%s' bench show '%s/R' 2>&1; echo $?"):format(binary, dir)))
  local text = pipe:read "a"
  lu.assertStrContains(text, "1. m  success 0.000")
  lu.assertEquals(text:match "(%d+)\n$", "0")
end

return M

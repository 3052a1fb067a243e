--- Runs under what a night does to them: kill -9, Ctrl-C, broken servers, poison, odd values; by their fault ids.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local os_ = require "agentbox.sys.os"
local runner = require "agentbox.runner"
local time = require "agentbox.time"
local traj = require "agentbox.traj"

local here = arg[0]:match "^(.*)/[^/]*$"
local binary = assert(fs.realpath "/proc/self/exe")
local census = dofile(here .. "/../support/census.lua")
local fakellm = dofile(here .. "/../support/fakellm.lua")

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-runner-faults-") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function task(id, fields)
  local out = { task_id = id, description = "d", verifier = { type = "command", command = "true" } }
  for key, value in pairs(fields or {}) do out[key] = value end
  return out
end

local function tasks(n, fields)
  local list = {}
  for i = 1, n do list[i] = task("t" .. i, fields) end
  return list
end

local function start(opts)
  local all = { sandbox = { backend = "none" }, model = model.scripted { "done" }, retry_wait_s = 0, concurrency = 8 }
  for key, value in pairs(opts) do all[key] = value end
  return assert(runner.start(all))
end

local function wait_until(what, fn)
  local deadline = time.monotonic() + 50
  while true do
    local value = fn()
    if value then return value end
    assert(time.monotonic() < deadline, "in vain: " .. what)
    async.sleep(0.02)
  end
end

-- ---------------------------------------------------------------- the real program

local function write_tasks(n, command)
  for i = 1, n do
    assert(fs.mkdir(("%s/tasks/t%02d"):format(dir, i), true))
    assert(fs.write(("%s/tasks/t%02d/task.json"):format(dir, i), json.encode(task(("t%02d"):format(i)))))
  end
  assert(fs.write(dir .. "/turns.json", json.encode { { tool_calls = { { name = "run_command",
    arguments = { command = command } } } }, "done" }))
end

-- `agentbox run-dir` in the background, its temporary files in the test's folder, since some are killed: { pid, output, status (once it has ended) }.
local function launch(words)
  local n = tostring(time.monotonic()):gsub("%.", "")
  local log = ("%s/log-%s"):format(dir, n)
  local pipe <close> = assert(io.popen(("cd '%s' && { TMPDIR=$PWD '%s' run-dir %s >%s 2>&1 & echo $!; wait $!; echo $? >%s.part; mv %s.part %s.status; } &")
    :format(dir, binary, words, log, log, log, log)))
  local pid = assert(pipe:read "n")
  return {
    pid = pid, log = log,
    status = function() return wait_until("the end of run-dir " .. words, function()
      local text = fs.exists(log .. ".status") and fs.read(log .. ".status")
      return text and tonumber(text:match "%d+")
    end) end,
    said = function() return assert(fs.read(log)) end,
  }
end

local function lines_of(run_dir)
  local n = 0
  for _, entry in ipairs(fs.list(run_dir) or {}) do
    if entry.name:find "^trajectories.*jsonl$" then
      for _ in assert(fs.read(run_dir .. "/" .. entry.name)):gmatch "\n" do n = n + 1 end
    end
  end
  return n
end

-- Every place of the run with its ids.
local function places(run_dir)
  local out = {}
  for t in traj.each(run_dir) do
    local group = t.line.group
    if json.type(group) == "raw" then group = group:decode() end
    local slot = ("%s/%d"):format(group.id, group.index)
    out[slot] = (out[slot] or 0) + 1
  end
  return out
end

local function check_each_once(run_dir, n, per_task)
  local found, count = places(run_dir), 0
  for slot, times in pairs(found) do
    lu.assertEquals(times, 1, slot)
    count = count + 1
  end
  lu.assertEquals(count, n * per_task)
end

function M.test_b97_b34_killed_and_resumed_until_it_is_whole()
  write_tasks(12, "true")
  local words = "tasks -m scripted:turns.json --backend none --n 2 -c 3 --run-id r -o out"
  local run_dir, runs = dir .. "/out/r", 0
  local first = launch(words)
  for _, at in ipairs { 3, 9, 15 } do
    wait_until("lines", function() return lines_of(run_dir) >= at or fs.exists(first.log .. ".status") end)
    os.execute(("kill -9 %d"):format(first.pid))
    runs = runs + 1
    lu.assertEquals(first.status() == 137 or first.status() == 0, true, first.said())
    first = launch "--resume out/r"
  end
  lu.assertEquals(first.status(), 0, first.said())
  lu.assertStrContains(first.said(), "done: 24/24 success")
  lu.assertStrContains(first.said(), "before this resume")
  check_each_once(run_dir, 12, 2)
  lu.assertEquals(runs, 3)
end

function M.test_b34_no_sandbox_outlives_a_killed_run()
  write_tasks(6, "sleep 600")
  local run = launch "tasks -m scripted:turns.json -c 4 --run-id r -o out"
  local pid = run.pid
  wait_until("four sandboxes", function() return census.below(pid) >= 4 end)
  local zygote = {}
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local status = entry.name:find "^%d+$" and fs.read(("/proc/%s/status"):format(entry.name), 1 << 16)
    if status and tonumber(status:match "PPid:%s+(%d+)") == pid then zygote[#zygote + 1] = tonumber(entry.name) end
  end
  lu.assertTrue(#zygote > 0)
  os.execute(("kill -9 %d"):format(pid))
  lu.assertEquals(run.status(), 137)
  wait_until("the end of what the engine had started", function()
    for _, one in ipairs(zygote) do
      if fs.exists(("/proc/%d"):format(one)) then return false end
    end
    return true
  end)
end

function M.test_once_interrupted_a_run_drains_twice_it_stops()
  write_tasks(8, "sleep 0.7")
  local words = "tasks -m scripted:turns.json --backend none -c 2 -o out --run-id "
  local run = launch(words .. "once")
  wait_until("a rollout", function() return lines_of(dir .. "/out/once") >= 1 end)
  os.execute(("kill -INT %d"):format(run.pid))
  lu.assertEquals(run.status(), 130, run.said())
  local kept = lines_of(dir .. "/out/once")
  lu.assertStrContains(run.said(), "interrupted: ")
  lu.assertStrContains(run.said(), ("interrupted; %d rollouts are saved"):format(kept))
  lu.assertStrContains(run.said(), "agentbox run-dir --resume out/once")
  for t in traj.each(dir .. "/out/once") do lu.assertEquals({ t.status, t.scored }, { "completed", true }) end
  write_tasks(8, "sleep 30")
  run = launch(words .. "twice")
  wait_until("the folder", function() return fs.exists(dir .. "/out/twice/events.jsonl") end)
  async.sleep(0.5)
  os.execute(("kill -INT %d"):format(run.pid))
  wait_until("the first answer", function() return run.said():find "again stops" end)
  os.execute(("kill -INT %d"):format(run.pid))
  local began = time.monotonic()
  lu.assertEquals(run.status(), 130, run.said())
  lu.assertTrue(time.monotonic() - began < 20)
  lu.assertEquals(lines_of(dir .. "/out/twice"), 0)
  write_tasks(8, "true")
  run = launch "--resume out/once"
  lu.assertEquals(run.status(), 0, run.said())
  check_each_once(dir .. "/out/once", 8, 1)
end

function M.test_b99_another_port_is_the_same_run_another_model_is_not()
  write_tasks(3, "true")
  local one, two = fakellm.script { "done" }, fakellm.script { "done" }
  local words = "tasks -m m --backend none --run-id r -o out --base-url "
  lu.assertEquals(launch(words .. one.url .. " --limit 2").status(), 0)
  local again = launch("--resume out/r --limit 3 --base-url " .. two.url)
  lu.assertEquals(again.status(), 0, again.said())
  lu.assertEquals({ #one.log(), #two.log() }, { 2, 1 })
  local other = launch("--resume out/r -m other --temperature 0.1 --base-url " .. two.url)
  lu.assertEquals(other.status(), 2)
  lu.assertStrContains(other.said(), 'model.model was "m", is "other"; model.temperature was 0.7, is 0.1')
  lu.assertEquals(launch("--resume out/r -m other --allow-changes --base-url " .. two.url).status(), 0)
  lu.assertEquals(#two.log(), 1)
end

function M.test_b109_zero_means_zero()
  write_tasks(3, "true")
  local run = launch "tasks -m scripted:turns.json --backend none -o out --limit 0 --run-id none"
  lu.assertEquals(run.status(), 0, run.said())
  lu.assertStrContains(run.said(), "done: 0/0 success")
  run = launch "tasks -m scripted:turns.json --backend none -o out --max-steps 0 --run-id steps"
  lu.assertEquals(run.status(), 0, run.said())
  for t in traj.each(dir .. "/out/steps") do lu.assertEquals({ t.stop_reason, t.metrics.steps }, { "max_turns", 0 }) end
  lu.assertEquals(launch("tasks --n 0 -o out").status(), 2)
  lu.assertEquals(launch("tasks -c 0 -o out").status(), 2)
end

-- ---------------------------------------------------------------- what lives

function M.test_b36_b37_live_sandboxes_are_those_of_running_rollouts()
  local list = tasks(30)
  list[7] = task("bad", { setup_commands = { "exit 1" } })
  local judges, most = 2, 0
  async.each({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, function() assert(require "agentbox.sandbox".create()):close() end)
  local run <close> = start { tasks = list, sandbox = {}, concurrency = 5, limits = { judges = judges, creating = 2 },
    model = model.scripted { { tool_calls = { { name = "run_command", arguments = { command = "sleep 0.05 & true" } } } }, "done" } }
  local before = census.below(os_.pid())
  while run.state ~= "over" do
    local running = run.running
    local live = census.below(os_.pid()) - before
    -- One each, a second one while it is judged; what ends between the two counts may still be counted.
    lu.assertTrue(live <= math.max(running, run.running) + 2 * judges, ("%d sandboxes, %d rollouts"):format(live, running))
    most = math.max(most, live)
    async.sleep(0.005)
  end
  lu.assertTrue(most >= 3, most)
  lu.assertEquals(run:wait().rollouts, 30)
  wait_until("no sandbox", function() return census.below(os_.pid()) <= before end)
end

-- ---------------------------------------------------------------- records

function M.test_b102_whatever_a_verifier_returns_there_is_one_row_each()
  local cyclic = {}
  cyclic.self = cyclic
  local odd = {
    function() return 0 / 0 end, function() return math.huge end, function() return print end,
    function() return { a = 1, b = cyclic } end, function() return 0.5, "\xff\xfe not text" end, function() return { score = 0.25 } end,
    function() return nil end, function() error { cyclic } end, function() return 1, "fine", { facts = cyclic } end,
    function() return "0.5" end,
  }
  local run <close> = start { tasks = tasks(#odd), out = dir, run_id = "r", attempts = 1, max_errors = 100, agentbox_json = false,
    prepare = function(t) return { verifier = odd[tonumber(t.task_id:sub(2))] } end }
  local sum = run:wait()
  lu.assertEquals({ sum.rollouts, sum.failure }, { #odd })
  check_each_once(dir .. "/r", #odd, 1)
  for t in traj.each(dir .. "/r") do
    lu.assertEquals(t.scored, t.reward ~= nil)
    if t.reward then lu.assertTrue(t.reward == t.reward and math.abs(t.reward) < math.huge) end
  end
end

function M.test_b100_separators_in_output_are_no_ends_of_lines()
  local odd = "a\u{85}b\u{2028}c\u{2029}d\ve\ff\rg"
  local turns = { { tool_calls = { { name = "run_command", arguments = { command = ("printf '%%s' '%s'"):format(odd) } } } }, "done " .. odd }
  local function go(resume, n)
    local run <close> = start { tasks = tasks(2), n = n, out = dir, run_id = "r", resume = resume, agentbox_json = false,
      model = model.scripted(turns) }
    return run:wait()
  end
  lu.assertEquals(go(false, 1).solved, 2)
  local sum = go(true, 2)
  lu.assertEquals({ sum.solved, sum.kept }, { 4, 2 })
  check_each_once(dir .. "/r", 2, 2)
  for t in traj.each(dir .. "/r") do lu.assertStrContains(t.messages[#t.messages].content, odd) end
end

function M.test_b105_finished_rollouts_are_not_held()
  local text = ("x"):rep(200000)
  local function memory(n)
    local run <close> = start { tasks = tasks(n), out = dir, run_id = "r" .. n, agentbox_json = false, concurrency = 4,
      model = model.fn(function(request)
        if #request.messages > 2 then return "done" end
        return { content = text, tool_calls = { { name = "run_command", arguments = { command = "true" } } } }
      end) }
    lu.assertEquals(run:wait().solved, n)
    collectgarbage()
    collectgarbage()
    return collectgarbage "count"
  end
  memory(8)
  local few, many = memory(10), memory(60)
  lu.assertTrue(many - few < 4096, ("%.0f KB more after 50 rollouts more"):format(many - few)) -- each has over 400 KB
end

function M.test_b106_nothing_is_shared_between_rollouts()
  local run <close> = start { tasks = tasks(64), out = dir, run_id = "r", agentbox_json = false, concurrency = 64,
    prepare = function(t)
      local mine
      return { agent = {
        before_turn = function(ctx)
          mine = ctx.task.task_id
          ctx:note("last", mine)
          async.yield()
        end,
        after_turn = function(ctx) lu.assertEquals(mine, ctx.task.task_id) end,
      }, metadata = { wanted = t.task_id } }
    end,
    model = model.fn(function(request)
      async.sleep(0.001)
      if #request.messages > 6 then return "done" end
      return { tool_calls = { { name = "run_command", arguments = { command = "true" } } } }
    end) }
  lu.assertEquals(run:wait().solved, 64)
  for t in traj.each(dir .. "/r") do
    lu.assertEquals({ t.metadata.wanted, t.line.notes and (json.type(t.line.notes) == "raw" and t.line.notes:decode() or t.line.notes).last },
      { t.task_id, t.task_id })
  end
end

-- ---------------------------------------------------------------- servers

function M.test_b77_a_full_context_is_counted_and_nobody_is_asked_again()
  local fake = fakellm.script { { status = 400, error = "This model's maximum context length is 200 tokens." } }
  local run <close> = start { tasks = tasks(3), model = model.open { model = "m", base_url = fake.url } }
  local sum = run:wait()
  lu.assertEquals({ sum.by_stop.context_length, sum.attempts, #fake.log(), sum.unscored }, { 3, 3, 3, 0 })
end

function M.test_b33_only_what_the_infrastructure_did_is_made_again()
  local kinds = {
    t1 = { code = "model", again = true }, t2 = { code = "network", again = true }, t3 = { code = "context", again = false },
    t4 = { code = "timeout", again = true },
  }
  local asked = {}
  local run <close> = start { tasks = tasks(4), attempts = 2, max_errors = 100, model = model.fn(function(request)
    local name = request.session:match "/(t%d)/"
    asked[name] = (asked[name] or 0) + 1
    return nil, err.new(kinds[name].code, "no")
  end) }
  run:wait()
  for name, kind in pairs(kinds) do lu.assertEquals(asked[name], kind.again and 2 or 1, name) end
end

function M.test_b83_a_server_that_is_gone_for_a_while_costs_no_rollout()
  local fake = fakellm.script { steps = { { status = 503 } } }
  local run <close> = start { tasks = tasks(40), concurrency = 40,
    model = model.open { model = "m", base_url = fake.url, retry_base_s = 0.02, retry_cap_s = 0.2, max_tries = 12 } }
  async.sleep(1.5)
  local address, name = fake.url:match "^(.*)/s/(.-)/v1$"
  assert(require "agentbox.http".request { method = "PUT", url = address .. "/_script/" .. name, proxy = false,
    body = json.encode { steps = json.array { "done" } } })
  local sum = run:wait()
  lu.assertEquals({ sum.solved, sum.unscored, sum.failure }, { 40, 0 })
  -- Forty find it broken at once; after that one at a time looks whether it is back.
  local tries = run.models.agent._model:stats().tries
  lu.assertTrue(tries <= 40 + 40 + 40, tries)
end

function M.test_what_a_pausing_server_gave_up_is_never_an_answer()
  local fake = fakellm.script { steps = {
    { content = "half an ans", finish_reason = "abort" }, { content = "half", finish_reason = "abort", delay_s = 0.02 }, "done",
  } }
  local run <close> = start { tasks = tasks(10), out = dir, run_id = "r", agentbox_json = false,
    model = model.open { model = "m", base_url = fake.url, retry_base_s = 0.005, retry_cap_s = 0.02 } }
  local sum = run:wait()
  lu.assertEquals({ sum.solved, sum.attempts, #fake.log() }, { 10, 10, 30 })
  for t in traj.each(dir .. "/r") do
    lu.assertEquals({ traj.text(t.messages[#t.messages]), t:calls()().tries }, { "done", 3 })
  end
end

function M.test_weights_that_change_all_the_time_with_a_server()
  local fake = fakellm.script { steps = {
    { tool_calls = { { name = "run_command", arguments = { command = "true" } } }, delay_s = 0.03, ["repeat"] = 3 },
    { content = "done", delay_s = 0.03 },
  } }
  local run
  run = start { tasks = tasks(20), n = 2, concurrency = 16, model = model.open { model = "policy@1", base_url = fake.url },
    policy = { version = 1, model = "policy@1" } }
  local _ <close> = run
  local clock = async.spawn(function()
    local version = 1
    while run.state ~= "over" do
      async.sleep(0.05)
      version = version + 1
      run:policy { version = version, model = "policy@" .. version }
    end
    return version
  end)
  local seen = {}
  for group in run:groups() do
    for _, t in ipairs(assert(group:trajectories())) do
      local last = 0
      for call in t:calls() do
        local version = call.versions[1].v
        lu.assertTrue(version >= last)
        last = version
        local body = json.decode(assert(t:body(call, "request")))
        lu.assertEquals(body.model, "policy@" .. version) -- the name that was sent is the version that is recorded
        seen[version] = true
      end
      lu.assertEquals(t.version_max, last)
    end
    assert(run:ack(group))
  end
  local ok, versions = clock:join()
  lu.assertTrue(ok and versions > 3)
  local n = 0
  for _ in pairs(seen) do n = n + 1 end
  lu.assertTrue(n >= 3, n)
end

return M

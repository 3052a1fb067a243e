--- What trainers' users ran into at scale, by the symptoms' numbers, and the faults B94, B111 and B112. The others have their
--- tests where their subject is: 3-8, 12, 19-23 groups and trainers; 1, 9, 25, 29, 33, 34 limits and leaks; 10, 11, 16, 35, 38,
--- 40 servers; 13, 17, 18 weights; 36, 37 texts.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local runs = dofile((arg[0]:gsub("faults/[^/]*$", "support/runs.lua")))
local time = require "agentbox.time"
local traj = require "agentbox.traj"
local live = dofile((arg[0]:gsub("faults/[^/]*$", "support/live.lua")))
local fakellm = dofile((arg[0]:gsub("faults/[^/]*$", "support/fakellm.lua")))

local binary = assert(fs.realpath "/proc/self/exe")

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-scale-") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function wait_until(what, fn)
  local deadline = time.monotonic() + 50
  while not fn() do
    assert(time.monotonic() < deadline, "in vain: " .. what)
    async.sleep(0.01)
  end
end

-- 1, 2, 4: a group whose one member takes for ever holds up neither the window nor the groups behind it.
function M.test_s2_the_window_is_refilled_and_no_group_waits_for_anothers_straggler()
  local slow, asked = true, 0
  local run <close> = runs.start { tasks = runs.tasks(12), group_size = 4, concurrency = 4, model = model.fn(function(request)
    asked = asked + 1
    if request.session:find "t1/0" then
      while slow do async.sleep(0.005) end
    end
    return "done"
  end) }
  local order = {}
  for group in run:groups() do
    order[#order + 1] = group.task_id
    if #order == 11 then
      lu.assertEquals(asked, 48) -- all of them, the last task's too, in the three places that were left
      slow = false
    end
    assert(run:ack(group))
  end
  lu.assertEquals({ #order, order[12], run:wait().solved }, { 12, "t1", 48 })
end

-- 14: what a client retries and what a run retries are counted, and nothing else does.
function M.test_s14_there_is_one_layer_of_retries()
  local fake = fakellm.script { { status = 500, error = "no" } }
  local run <close> = runs.start { tasks = runs.tasks(1), out = dir, run_id = "r", attempts = 2, max_errors = 10,
    model = model.open { model = "m", base_url = fake.url, max_tries = 3, retry_base_s = 0.001, retry_cap_s = 0.002 } }
  run:wait()
  lu.assertEquals(#fake.log(), 2 * 3)
  local attempts = {}
  for t in traj.each(dir .. "/r") do
    attempts[#attempts + 1] = t.line.attempt
    lu.assertEquals({ t:calls()().error.tries, t.scored }, { 3, false })
  end
  lu.assertEquals(attempts, { 0, 1 })
end

-- 15, 18: each try has an id, a server hears which ones nobody waits for, and their connections are closed.
function M.test_s15_s18_requests_that_nobody_waits_for_are_given_up_by_their_id()
  local fake = fakellm.script { { hang = true } }
  local before = fakellm.stats().inflight
  local run <close> = runs.start { tasks = runs.tasks(3), concurrency = 3, max_staleness = 0, policy = { version = 1 }, attempts = 1,
    model = model.open { model = "m", base_url = fake.url, abort_path = "/abort_requests", timeout_s = 60 } }
  wait_until("three requests", function() return #fake.log() == 3 end)
  run:policy { version = 2 }
  wait_until("their next attempts", function() return #fake.log() == 6 end)
  local sent, ids = fake.log(), {}
  for _, request in ipairs(sent) do ids[#ids + 1] = request.headers["x-request-id"] end
  wait_until("the ends of the first three", function()
    local aborted = fakellm.aborted()
    return aborted[ids[1]] and aborted["chatcmpl-" .. ids[2]] and aborted[ids[3]]
  end)
  for i = 4, 6 do lu.assertNil(fakellm.aborted()[ids[i]]) end
  wait_until("three connections", function() return fakellm.stats().inflight == before + 3 end)
  run:stop()
  run:wait()
  wait_until("no connection", function() return fakellm.stats().inflight == before end)
  local unique = {}
  for _, id in ipairs(ids) do unique[id] = true end
  local count = 0
  for _ in pairs(unique) do count = count + 1 end
  lu.assertEquals(count, 6)
end

function M.test_s15_a_try_that_was_answered_is_not_given_up()
  local fake = fakellm.script { { status = 503 }, { hang = true }, "done" }
  local handle = model.open { model = "m", base_url = fake.url, abort_path = "/abort_requests", timeout_s = 0.3, retry_base_s = 0.001 }
  local response = assert(handle:complete { messages = { { role = "user", content = "?" } }, session = "s" })
  lu.assertEquals({ response.message.content, response.tries }, { "done", 3 })
  local ids, aborted = {}, {}
  for i, request in ipairs(fake.log()) do ids[i] = request.headers["x-request-id"] end
  wait_until("the second one's end", function() aborted = fakellm.aborted() return aborted[ids[2]] end)
  lu.assertEquals({ aborted[ids[1]], aborted[ids[3]] }, {})
  lu.assertErrorMsgContains("abort_path", model.open, { model = "m", abort_path = "abort" })
end

-- 9: who watches a run sees what each rollout waits for.
function M.test_s9_what_a_rollout_waits_for_has_a_name()
  local fake = fakellm.script { { hang = true } }
  local run <close> = runs.start { tasks = runs.tasks(2), concurrency = 2, model = model.open { model = "m", base_url = fake.url } }
  wait_until("two requests", function() return #fake.log() == 2 end)
  for _, one in ipairs(run:slowest(5)) do lu.assertEquals(one.doing, "turn 1: model") end
  lu.assertEquals(#run:slowest(5), 2)
end

-- 24: what a rollout did before its model server failed is not done twice in the same place: it begins again where nothing was.
function M.test_s24_an_attempt_made_again_finds_no_traces_of_the_first()
  local done = 0
  local run <close> = runs.start { tasks = runs.tasks(1), out = dir, run_id = "r", agentbox_json = false, tools = "shell",
    model = model.fn(function(request)
      local last = request.messages[#request.messages]
      if last.role ~= "tool" then
        return { content = "", tool_calls = { { name = "run_command", arguments = { command = "echo x >> side; wc -l < side" } } } }
      end
      done = done + 1
      if done == 1 then return nil, err.new("model", "the server is gone", { http_status = 503 }) end
      return "done"
    end) }
  local sum = run:wait()
  lu.assertEquals({ sum.solved, sum.attempts, done }, { 1, 2, 2 })
  local outputs = {}
  for t in traj.each(sum.run_dir) do
    for _, message in ipairs(t.messages) do
      if message.role == "tool" then outputs[#outputs + 1] = message.content:match "stdout %-%-%-\n(%d+)" end
    end
  end
  lu.assertEquals(outputs, { "1", "1" })
end

-- 28: cleaning up fails after something else did: both are in the record, and the first one is why the rollout ended.
function M.test_s28_a_failed_cleanup_does_not_hide_what_went_wrong()
  local tool = require "agentbox.tool".define {
    api = 1, name = "lease", description = "d", parameters = {}, open = function() return {} end,
    close = function() error "cannot delete the lease" end, run = function() return "taken" end,
  }
  local run <close> = runs.start { tasks = runs.tasks(1), out = dir, run_id = "r", agentbox_json = false, attempts = 1, tools = "custom",
    custom_tools = { tool }, model = model.scripted { { tool_calls = { { name = "lease", arguments = {} } } }, "done" },
    verifier = function() return nil, err.new("verifier", "the grader is broken") end }
  local sum = run:wait()
  local t = assert(traj.each(sum.run_dir)())
  lu.assertEquals({ sum.unscored, t.stop_reason, t.failure_class }, { 1, "scorer_error", "verifier" })
  local told = {}
  for _, entry in ipairs(t.line.logs) do told[#told + 1] = entry.text end
  local text = table.concat(told, "\n")
  lu.assertStrContains(text, "cannot delete the lease")
  lu.assertStrContains(text, "the grader is broken")
  lu.assertStrContains(json.encode(t.line.stop), "the grader is broken")
end

local function need_cpu_time()
  live.need_native()
  local sb <close> = assert(require "agentbox.sandbox".create {})
  if not (sb:usage() or {}).cpu_s then require "agentbox.test".skip "no cgroup counts CPU time here" end
end

-- 42: who computes and who only waits look the same from outside, but for the CPU time.
function M.test_s42_a_rollout_that_computes_shows_its_cpu_time()
  need_cpu_time()
  local commands = { ["t1/0"] = "while :; do :; done", ["t2/0"] = "sleep 1000" }
  local run <close> = runs.start { tasks = runs.tasks(2), concurrency = 2, sandbox = {}, tools = "shell", model = model.fn(function(request)
    local command = commands[request.session:match "t%d/0"]
    return { content = "", tool_calls = { { name = "run_command", arguments = { command = command } } } }
  end) }
  local function used()
    local out = {}
    for _, one in ipairs(run:slowest(2)) do out[one.id] = one.doing == "turn 1: tools" and one.cpu_s end
    return out["t1/0"], out["t2/0"]
  end
  local busy, idle
  wait_until("half a second of CPU time", function()
    busy, idle = used()
    return busy and idle and busy > 0.5
  end)
  lu.assertTrue(idle < 0.25, idle)
end

-- 42: who computes gets on; it has a limit of its own, and who only waits is given up.
function M.test_s42_who_computes_has_another_limit_than_who_waits()
  need_cpu_time()
  local function given_up(busy_factor, enough)
    local lost = {}
    local _ <close> = runs.start { tasks = runs.tasks(1), n = 4, concurrency = 4, sandbox = {}, tools = "shell",
      straggler = { factor = 1, min_s = 0, busy_factor = busy_factor },
      on_event = function(kind, fields)
        if kind == "straggler" then lost[fields.slot] = fields.msg end
      end,
      model = model.fn(function(request)
        local command = ({ ["t1/0"] = "while :; do :; done", ["t1/1"] = "sleep 1000" })[request.session:match "t1/%d"]
        if not command then return "done" end
        return { content = "", tool_calls = { { name = "run_command", arguments = { command = command } } } }
      end) }
    wait_until("stragglers", function() return lost["t1/1"] and (not enough or lost[enough]) end)
    return lost
  end
  local lost = given_up(1e9)
  lu.assertNil(lost["t1/0"], "what computed was given up")
  lu.assertStrContains(lost["t1/1"], " 1 times the group's median")
  lost = given_up(1.5, "t1/0")
  lu.assertStrContains(lost["t1/0"], " 1.5 times the group's median")
end

-- ---------------------------------------------------------------- B94

-- A server written for it: comments as keep-alives, line ends of both kinds, data of several lines, a character cut in two.
local SLOW_STREAM = [[
import socket, sys, threading, time, json
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8); print(s.getsockname()[1], flush=True)
def piece(text): return json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}, ensure_ascii=False)
end = json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
for n in (1, 2):
    c, _ = s.accept()
    got = b""
    while b"\r\n\r\n" not in got: got += c.recv(65536)
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for i in range(8): c.sendall(b": ping\r\n\r\n"); time.sleep(0.1)
    split = piece("a\u00e9b").encode()
    at = split.index(b"\xa9")
    c.sendall(b"data: " + split[:at]); time.sleep(0.05); c.sendall(split[at:] + b"\r\n\r\n")
    two = piece("cd").split(", ", 1)
    c.sendall(("data: %s,\ndata: %s\n\n" % (two[0], two[1])).encode())
    if n > 1: c.sendall(("data: %s\r\n\r\ndata: [DONE]\r\n\r\n" % end).encode())
    c.close()
]]

function M.test_b94_a_stream_with_keep_alives_is_waited_for_and_a_cut_one_is_no_answer()
  assert(fs.write(dir .. "/slow.py", SLOW_STREAM))
  local pipe = assert(io.popen(("exec timeout 60 python3 %s/slow.py"):format(dir)))
  local port = assert(pipe:read "n")
  local handle = model.open { model = "m", base_url = ("http://127.0.0.1:%d/v1"):format(port), stream = true, idle_timeout_s = 0.6,
    retry_base_s = 0.001, max_tries = 3 }
  local response, problem = handle:complete { messages = { { role = "user", content = "?" } } }
  lu.assertEquals(response and { response.message.content, response.tries }, { "aébcd", 2 }, problem and problem.msg)
  pipe:close()
end

-- ---------------------------------------------------------------- B111, B112

local function command(words)
  local status = select(3, os.execute(("cd '%s' && %s"):format(dir, words)))
  return status
end

local function write_task(id)
  assert(fs.mkdir(dir .. "/tasks/" .. id, true))
  assert(fs.write(("%s/tasks/%s/task.json"):format(dir, id), json.encode {
    task_id = id, description = "Write é – 😀 into a file.", verifier = { type = "command", command = "grep -q '😀' é.txt" } }))
  assert(fs.write(dir .. "/turns.json", json.encode { { content = "é – 😀", tool_calls = { { name = "run_command",
    arguments = { command = "echo 'é – 😀' > é.txt; cat é.txt" } } } }, "done – 😀" }))
end

function M.test_b111_a_locale_without_utf8_changes_nothing()
  write_task "smile"
  lu.assertEquals(command(("env -u LANG LC_ALL=C '%s' run-dir tasks -m scripted:turns.json --backend none -o out --run-id r >said 2>&1")
    :format(binary)), 0, fs.read(dir .. "/said"))
  local t = assert(traj.load(dir .. "/out/r"))
  lu.assertEquals({ t.final_status, t.messages[3].content, t.messages[5].content }, { "success", "é – 😀", "done – 😀" })
  lu.assertStrContains(t.messages[4].content, "é – 😀")
end

function M.test_b112_with_json_there_is_nothing_else_on_stdout()
  for i = 1, 3 do write_task("t" .. i) end
  assert(fs.mkdir(dir .. "/tasks/bad", true))
  assert(fs.write(dir .. "/tasks/bad/task.json", "{")) -- a warning
  local run = "run-dir tasks -m scripted:turns.json --backend none -o out --run-id r --json"
  local words = { run, "run-dir --resume out/r --n 2 --json", "traj list out/r --json", "traj check out/r --json",
    "traj stats out/r --json", "ps --json", "doctor --json", "prune --json", "config show --json" }
  -- One document, or one a line.
  assert(fs.write(dir .. "/read.py", "import json, sys\ntext = sys.stdin.read()\ntry:\n    json.loads(text)\nexcept ValueError:\n"
    .. "    for line in text.splitlines():\n        json.loads(line)\n"))
  for _, one in ipairs(words) do
    command(("AGENTBOX_HOME=$PWD/home '%s' %s >stdout 2>stderr"):format(binary, one))
    lu.assertEquals(command "python3 read.py <stdout 2>stderr", 0, one .. ": " .. assert(fs.read(dir .. "/stdout")))
  end
end

return M

--- The trainer's door of a run: tasks in, groups out until they are acknowledged, whoever dies.
local async = require "agentbox.async"
local export = require "agentbox.export"
local fs = require "agentbox.fs"
local http = require "agentbox.http"
local json = require "agentbox.json"
local model = require "agentbox.model"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))
local serve = require "agentbox.serve"
local test = require "agentbox.test"
local wire = dofile((arg[0]:gsub("lua/[^/]*$", "support/wire.lua")))

local M = {}

-- A trainer: a session and what it may ask.
local Trainer = {}
Trainer.__index = Trainer

function Trainer:ask(method, path, doc)
  local response = assert(http.request {
    url = self.url .. path, method = method, body = doc and json.encode(doc) or nil, proxy = false, keep_alive = false,
    headers = self.session and { ["Agentbox-Session"] = self.session } or nil,
  })
  return json.decode(response.body), response.status
end

function Trainer:groups(query)
  local answer, status = self:ask("GET", "/v1/groups?wait=30&" .. (query or ""))
  test.eq(status, 200, json.encode(answer))
  return answer.groups, answer
end

function Trainer:ack(...) return self:ask("POST", "/v1/ack", { seq = json.array { ... } }) end

local function connect(door, consumer)
  local self = setmetatable({ url = door.url }, Trainer)
  self.session = self:ask("POST", "/v1/connect", { consumer = consumer }).session
  return self
end

local function seqs(groups)
  local list = {}
  for i, group in ipairs(groups) do list[i] = group.seq end
  return list
end

local function open(run, opts)
  local all = { listen = "127.0.0.1:0" }
  for key, value in pairs(opts or {}) do all[key] = value end
  return assert(run:serve(all))
end

function M.test_groups_are_given_out_until_they_are_acknowledged()
  local run <close> = runs.start { tasks = runs.tasks(3), n = 2, concurrency = 6 }
  local door <close> = open(run)
  local trainer = connect(door, "first")
  run:wait()
  local all, answer = trainer:groups "max=9"
  test.eq({ seqs(all), answer.state, answer.ended }, { { 1, 2, 3 }, "over", false })
  test.eq({ #all[1].members, all[1].rewards[1], all[1].zero_signal, all[1].stale }, { 2, 1, true, false })
  test.eq(seqs((trainer:groups "max=9&after=1")), { 2, 3 })
  test.eq(trainer:ack(1).cursor, 1)
  test.eq(trainer:ack(1).cursor, 1)
  test.eq(seqs((trainer:groups "max=9")), { 2, 3 })
  test.eq(trainer:ack(3).cursor, 1)
  test.eq(seqs((trainer:groups "max=9")), { 2 })
  test.eq(door:wait(0), false)
  local acked = trainer:ack(2)
  test.eq({ acked.cursor, acked.ended }, { 3, true })
  local none, last = trainer:groups()
  test.eq({ #none, last.ended, door:wait(10) }, { 0, true, true })
  test.eq(select(2, trainer:ack(4)), 400)
end

function M.test_rows_are_those_of_the_export()
  local tmp <close> = runs.tmp()
  local run <close> = runs.start { tasks = runs.tasks(1), n = 2, concurrency = 1, out = tmp.path, run_id = "r" }
  local door <close> = open(run)
  local trainer = connect(door)
  run:wait()
  local group = trainer:groups("formats=canonical,openai,art")[1]
  for _, format in ipairs { "canonical", "openai", "art" } do
    local out = tmp.path .. "/" .. format .. ".jsonl"
    assert(export.convert { input = run.run_dir, format = format, out = out })
    local lines = {}
    for i, row in ipairs(group.formats[format]) do lines[i] = json.encode(row) .. "\n" end
    test.eq(table.concat(lines), assert(fs.read(out)), format)
  end
  test.eq(#trainer:ask("GET", "/v1/groups/1?formats=openai").formats.openai, 2)
  test.eq(select(2, trainer:ask("GET", "/v1/groups/2")), 404)
  test.eq(select(2, trainer:ask("GET", "/v1/groups?formats=nonsense")), 400)
end

function M.test_an_answer_that_is_asked_for_again_is_converted_once()
  local tmp <close> = runs.tmp()
  local run <close> = runs.start { tasks = runs.tasks(2), n = 2, concurrency = 1, out = tmp.path, run_id = "r" }
  local door <close> = open(run)
  local trainer = connect(door)
  run:wait()
  local first = json.encode((trainer:groups "max=9&formats=openai,art"))
  assert(fs.remove(tmp.path .. "/r/trajectories-00000.jsonl"))
  test.eq(json.encode((trainer:groups "max=9&formats=openai,art")), first)
  test.eq(select(2, trainer:ask("GET", "/v1/groups?wait=0&formats=openai")), 404) -- which needs the record again
end

function M.test_the_trainer_that_connected_last_is_the_one()
  local held = true
  local slow = model.fn(function()
    while held do async.sleep(0.001) end
    return "done"
  end)
  local run <close> = runs.start { tasks = runs.tasks(1), n = 2, model = slow }
  local door <close> = open(run)
  local old = connect(door, "old")
  local told
  async.scope(function(scope)
    scope:spawn(function() told = { old:ask("GET", "/v1/groups?wait=60") } end)
    wire.wait(function() return door._server:stats().answering == 1 end)
    local new = connect(door, "new")
    wire.wait(function() return told end)
    held = false
    test.eq({ told[2], told[1].error.code }, { 409, "superseded" })
    test.eq(seqs((new:groups())), { 1 })
    test.eq(old:ack(1).error.code, "superseded")
    test.eq(new:ack(1).cursor, 1)
  end)
  local stranger = setmetatable({ url = door.url, session = "made up" }, Trainer)
  test.eq(stranger:ask("GET", "/v1/groups").error.code, "superseded")
  stranger.session = nil
  test.eq(select(2, stranger:ask("GET", "/v1/groups")), 400)
end

-- A trainer that spells a member wrong must not believe that it was heard.
function M.test_what_nobody_reads_is_refused()
  local run <close> = runs.start { tasks = runs.tasks(1), n = 2, model = model.scripted { "done" } }
  local door <close> = open(run)
  local trainer = connect(door, "careless")
  test.eq(#trainer:groups(), 1)
  for _, case in ipairs {
    { "/v1/ack", {} }, { "/v1/ack", { seqs = json.array { 1 } } }, { "/v1/ack", { seq = "1" } }, { "/v1/ack", { seq = json.array { 2 } } },
    { "/v1/ack", { seq = json.array { 1, 1.5 } } }, { "/v1/ack", { seq = json.null } }, { "/v1/policy", { version = 2, name = "x" } },
    { "/v1/policy", { version = 2, model = "" } }, { "/v1/policy", { version = "2" } }, { "/v1/connect", { consumer = 5 } },
    { "/v1/cancel", { id = "x", run = "halt" } }, { "/v1/cancel", { run = true } },
  } do
    local answer, status = trainer:ask("POST", case[1], case[2])
    test.eq({ status, answer.error.code }, { 400, "badarg" }, case[1] .. json.encode(case[2]))
  end
  for _, query in ipairs { "max=0", "max=1001", "after=-1", "after=x", "wait=301", "wait=nan", "formats=verl:mode=evil" } do
    test.eq(select(2, trainer:ask("GET", "/v1/groups?" .. query)), 400, query)
  end
  test.eq(trainer:ask("GET", "/v1/status").cursor, 0)
  test.eq(seqs((trainer:groups())), { 1 })
end

function M.test_acknowledged_out_of_order_is_acknowledged_after_a_crash()
  local tmp <close> = runs.tmp()
  local opts = { tasks = runs.tasks(4), n = 2, out = tmp.path, run_id = "r" }
  local trainer
  do
    local run <close> = runs.start(opts)
    local door <close> = open(run)
    run:wait()
    trainer = connect(door)
    trainer:groups "max=9"
    trainer:ack(2)
    trainer:ack(4)
  end
  opts.resume = true
  local run <close> = runs.start(opts)
  local door <close> = open(run)
  local stranger = setmetatable({ url = door.url, session = "made up" }, Trainer)
  test.eq(stranger:ask("GET", "/v1/groups").error.code, "superseded")
  trainer.url = door.url -- its session is good for the restarted engine too
  test.eq(seqs((trainer:groups "max=9")), { 1, 3 })
  trainer:ack(1)
  test.eq(run.cursor, 2)
  trainer:ack(3)
  test.eq({ run.cursor, #trainer:groups() }, { 4, 0 })
end

-- Its rollouts are over, its groups are not: a second door would give them to a second trainer.
function M.test_no_other_engine_goes_on_while_a_door_is_open()
  local tmp <close> = runs.tmp()
  local opts = { tasks = runs.tasks(2), n = 2, out = tmp.path, run_id = "r" }
  local run <close> = runs.start(opts)
  local door = open(run)
  run:wait()
  opts.resume = true
  local other, problem = require "agentbox.runner".start {
    tasks = opts.tasks, n = 2, out = tmp.path, run_id = "r", resume = true, sandbox = { backend = "none" }, model = runs.done(),
  }
  test.eq({ other, problem.code }, { nil, "busy" })
  local trainer = connect(door)
  trainer:groups()
  trainer:ack(1)
  door:close()
  door:close()
  local later <close> = runs.start(opts)
  local again <close> = open(later)
  later:wait()
  test.eq(seqs((connect(again):groups "max=9")), { 2 })
  local refused
  refused, problem = run:serve { listen = "127.0.0.1:0" }
  test.eq({ refused, problem.code }, { nil, "busy" })
end

-- What a larger group would have besides is no group of its own.
function M.test_a_run_that_goes_on_keeps_the_size_of_its_groups()
  local tmp <close> = runs.tmp()
  local opts = { tasks = runs.tasks(2), n = 2, out = tmp.path, run_id = "r" }
  do
    local run <close> = runs.start(opts)
    local _ <close> = open(run)
    run:wait()
  end
  opts.resume, opts.n = true, 4
  local run <close> = runs.start(opts)
  local door, problem = serve.open(run, { listen = "127.0.0.1:0" })
  test.eq({ door, problem.code }, { nil, "config" })
  test.contains(problem.msg, "groups of 2 rollouts, not of 4")
  test.contains(problem.msg, "begin another run")
end

function M.test_tasks_come_once_and_survive()
  local tmp <close> = runs.tmp()
  local function opts(inbox, resume)
    return { tasks = inbox, n = 2, out = tmp.path, run_id = "r", resume = resume }
  end
  local inbox = serve.inbox { runs.task "early" }
  do
    local run <close> = runs.start(opts(inbox))
    local door <close> = open(run, { inbox = inbox })
    local trainer = connect(door)
    test.eq(trainer:groups()[1].task_id, "early")
    local batch = { key = "step-1", tasks = json.array { runs.task "a", runs.task "b" } }
    test.eq(trainer:ask("POST", "/v1/tasks", batch), json.decode '{"added":2,"total":2,"ended":false}')
    test.eq(trainer:ask("POST", "/v1/tasks", batch).added, 0)
    local bad, status = trainer:ask("POST", "/v1/tasks", { tasks = json.array { runs.task "c", json.object { task_id = "d" } } })
    test.eq(status, 400)
    test.contains(bad.error.msg, "task 2:")
    while run.tally.groups.closed < 3 do run:_await(1) end
    trainer:ack(1)
    test.eq(trainer:ask("POST", "/v1/policy", { version = 5 }).version, 5)
    trainer:ask("POST", "/v1/tasks", { key = "step-2", tasks = json.array { runs.task "a" } })
    run:stop "as if killed"
    run:wait()
  end
  inbox = serve.inbox { runs.task "early" }
  local run <close> = runs.start(opts(inbox, true))
  local door <close> = open(run, { inbox = inbox })
  local trainer = connect(door)
  test.eq(trainer:ask("POST", "/v1/tasks", { key = "step-2", tasks = json.array { runs.task "a" } }).added, 0)
  trainer:ask("POST", "/v1/tasks", { tasks = json.array {}, ["end"] = true })
  test.eq(trainer:ask("POST", "/v1/tasks", { tasks = json.array { runs.task "late" } }).error.code, "exists")
  run:wait()
  local ids = runs.ids(trainer:groups "max=9")
  test.eq(ids, { "a", "a#2", "b" })
  test.eq(run.tally.rollouts, 8)
  test.eq(run.models.agent.version, 5, "the weights that were announced last")
end

function M.test_groups_that_became_too_old_are_dropped_or_marked()
  for _, stale in ipairs { "drop", "keep" } do
    local run <close> = runs.start {
      tasks = runs.tasks(2), n = 2, policy = { version = 1 }, max_staleness = 1,
    }
    local door <close> = open(run, { stale = stale })
    run:wait()
    for _, one in ipairs { 2, 3 } do
      run.models.agent.version = one
      local trainer = connect(door)
      local found = trainer:groups "max=9"
      if one == 2 then test.eq({ seqs(found), found[1].stale }, { { 1, 2 }, false }) end
      if one == 3 and stale == "keep" then test.eq({ seqs(found), found[1].stale }, { { 1, 2 }, true }) end
      if one == 3 and stale == "drop" then test.eq({ #found, run.tally.stale_groups, run.cursor }, { 0, 2, 2 }) end
      local told = table.concat(require "agentbox.cli._summary".lines(run:summary()), "\n")
      test.eq(told:find "too old   2 groups were not given out" ~= nil, one == 3 and stale == "drop")
    end
  end
end

-- Rollouts are over long before their groups are.
function M.test_what_is_dropped_after_the_last_rollout_is_told()
  local tmp <close> = runs.tmp()
  local run <close> = runs.start {
    tasks = runs.tasks(2), n = 2, policy = { version = 1 }, max_staleness = 0, out = tmp.path, run_id = "r",
  }
  local door <close> = open(run)
  run:wait()
  local trainer = connect(door)
  trainer:ask("POST", "/v1/policy", { version = 2 })
  test.eq(#trainer:groups "max=9", 0)
  local told = {}
  for line in assert(fs.read(run.run_dir .. "/events.jsonl")):gmatch "[^\n]+" do
    local event = json.decode(line)
    told[#told + 1] = event.seq and ("%s %d"):format(event.kind, event.seq) or event.kind
  end
  test.eq({ table.unpack(told, #told - 4) }, { "end", "connect", "policy", "stale_group 1", "stale_group 2" })
end

function M.test_back_pressure_and_weights()
  local run <close> = runs.start {
    tasks = runs.tasks(10), n = 2, max_lead = 2, concurrency = 1, policy = { version = 1 },
  }
  local door <close> = open(run)
  local trainer = connect(door)
  local function settled() return run.closed == 2 and run.running == 0 end
  while not settled() do run:_await(0.05) end
  test.eq(trainer:ask("GET", "/v1/status").unacknowledged, 2)
  test.eq(trainer:ask("POST", "/v1/policy", { version = 2, model = "policy@2" }).version, 2)
  test.eq(select(2, trainer:ask("POST", "/v1/policy", { version = 1 })), 409)
  trainer:ack(1)
  while run.closed < 3 or run.running > 0 do run:_await(0.05) end
  test.eq({ run.closed, run.models.agent.version, run.models.agent.served }, { 3, 2, "policy@2" })
  test.eq(trainer:ask("POST", "/v1/cancel", { run = "drain" }).state, "draining")
  test.eq(select(2, trainer:ask("POST", "/v1/cancel", { id = "nobody" })), 404)
  run:wait()
  test.eq(seqs((trainer:groups "max=9")), { 2, 3 })
  test.contains(assert(http.request { url = door.url .. "/metrics", proxy = false, keep_alive = false }).body, "agentbox_groups_total")
  test.eq(trainer:ask("GET", "/health").ok, true)
end

function M.test_a_token_keeps_others_out()
  local run <close> = runs.start { tasks = runs.tasks(1), n = 2 }
  local door <close> = open(run, { token = "a long token" })
  local stranger = setmetatable({ url = door.url }, Trainer)
  for _, path in ipairs { "/v1/status", "/v1/groups", "/metrics", "/v1/groups/1" } do
    local response = assert(http.request { url = door.url .. path, proxy = false, keep_alive = false })
    test.eq(response.status, 401, path)
  end
  test.eq(stranger:ask("GET", "/health").ok, true)
end

return M

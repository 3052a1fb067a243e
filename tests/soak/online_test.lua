--- An online loop as a night has it: `agentbox serve` with sandboxes, a model server with a real one's times and refusals,
--- weights that change every 20 s, a trainer that is killed three times and comes back, sooner or later, and an engine that
--- is killed and goes on. No group is lost, none is used twice, no call has other weights than those of its moment.
---
--- A twentieth of all times by default; the whole, five minutes, with AGENTBOX_SOAK.
local ab = require "agentbox"
local lu = require "luaunit"
local rand = require "agentbox.sys.rand"

local here = arg[0]:match "^(.*)/[^/]*$"
local census = dofile(here .. "/../support/census.lua")
local fakellm = dofile(here .. "/../support/fakellm.lua")
local live = dofile(here .. "/../support/live.lua")
local binary = assert(ab.fs.realpath "/proc/self/exe")
local door_tests = assert(ab.fs.realpath(here .. "/../../python/agentbox"))

local SOAK = os.getenv "AGENTBOX_SOAK" ~= nil
fakellm.address() -- it stays for all tests
local S = SOAK and 1 or 1 / 20 -- a second of this loop
local PERIOD, VERSIONS, STALENESS, SIZE = 20 * S, 14, 1, 8
local TRAINING, AWAY = 0.75 * S, { 1 * S, 15 * S, 50 * S } -- the last time for longer than what waits may become old
local BATCH, AHEAD = 3, 6

local M = { setUp = live.need_native }

local function wait_until(what, fn)
  local deadline = ab.time.monotonic() + 120
  while not fn() do
    assert(ab.time.monotonic() < deadline, "in vain: " .. what)
    ab.async.sleep(0.02)
  end
end

-- ---------------------------------------------------------------- the model server

-- Turns of all rollouts in one row: commands and answers, most within two seconds, some late, some later than two changes of
-- the weights, some refused.
local function script(random)
  local steps = {}
  for i = 1, 8000 do
    local chance = random:float()
    local step = { delay_s = (0.3 + 1.7 * random:float()) * S, token_ids = random:int(5, 40) }
    step.logprobs = step.token_ids
    if chance < 0.03 then
      step = { status = 429, delay_s = 0.05 * S, retry_after = SOAK and 1 or 0 }
    elseif chance < 0.05 then
      step.delay_s = 15 * S
    elseif chance < 0.055 then
      step.delay_s = 50 * S
    end
    if random:float() < 0.7 then
      step.tool_calls = { { name = "run_command", arguments = { command = "echo x >>notes; wc -l <notes" } } }
    else
      step.content = "done"
    end
    steps[i] = step
  end
  return { shared = true, steps = ab.json.array(steps) }
end

-- ---------------------------------------------------------------- the loop

---@class Loop
---@field box agentbox.Sandbox
---@field run string
---@field url string                # of the model server
---@field told { version: integer, asked: number, told: number }[]
---@field kills integer             # of all, how many have been
---@field fed integer
---@field over boolean
local Loop = {}
Loop.__index = Loop

-- Starts a program; its own process is what it says first, its output is in a file.
function Loop:start(name, command, env)
  local process = assert(self.box:spawn(("echo $$; exec %s >>'%s.%s' 2>&1"):format(command, self.run, name), { env = env }))
  return process, assert(tonumber((process:read { until_text = "\n", timeout_s = 60 })))
end

function Loop:said(name) return (ab.fs.read(("%s.%s"):format(self.run, name)) or ""):sub(-3000) end

function Loop:engine()
  return self:start("engine", ("'%s' serve '%s' --listen 'unix:%s.sock' -m policy@1 --base-url '%s' --weights 1 -c 24 --group-size %d "
    .. "--max-lead 3 --max-staleness %d --max-errors 1000"):format(binary, self.run, self.run, self.url, SIZE, STALENESS))
end

function Loop:trainer()
  local command = ("python3 '%s/tests/trainer.py' 'unix:%s.sock' '%s.used' 0 %g"):format(door_tests, self.run, self.run, TRAINING)
  return self:start("trainer", command, { PYTHONPATH = door_tests .. "/src", PYTHONDONTWRITEBYTECODE = "1" })
end

-- Asks the engine, again while it is away.
function Loop:ask(method, path, doc)
  local response
  wait_until("an answer to " .. path, function()
    response = ab.http.request {
      url = "http://localhost" .. path, unix_socket = self.run .. ".sock", method = method, body = doc and ab.json.encode(doc) or nil,
      proxy = false, keep_alive = false, timeout_s = 60,
    }
    return response
  end)
  assert(response.status == 200, response.body)
  return ab.json.decode(response.body)
end

-- New weights all the time, and tasks while they come and anybody is still to be killed.
function Loop:announce()
  for version = 2, VERSIONS do
    ab.async.sleep(PERIOD)
    local asked = ab.time.now()
    self:ask("POST", "/v1/policy", { version = version, model = "policy@" .. version })
    self.told[#self.told + 1] = { version = version, asked = asked, told = ab.time.now() }
  end
end

function Loop:feed()
  while #self.told < VERSIONS or self.kills < #AWAY + 1 do
    local tasks = ab.json.array {}
    for i = 1, BATCH do
      tasks[i] = { task_id = "t" .. self.fed + i, description = "count", verifier = { type = "command", command = "true" } }
    end
    self:ask("POST", "/v1/tasks", { tasks = tasks, key = "after " .. self.fed })
    self.fed = self.fed + BATCH
    wait_until("room for tasks", function()
      ab.async.sleep(S)
      return self.fed - self:ask("GET", "/v1/status").closed < AHEAD or #self.told == VERSIONS
    end)
  end
  self:ask("POST", "/v1/tasks", { tasks = ab.json.array {}, ["end"] = true })
end

-- kill -9 at a random moment of a part of the loop; nothing of it stays.
function Loop:kill(name, process, pid, from, to, random)
  local moment = self.began + PERIOD * VERSIONS * (from + (to - from) * random:float())
  ab.async.sleep(math.max(0, moment - ab.time.monotonic()))
  local children = census.children(pid)
  os.execute(("kill -9 %d"):format(pid))
  local outcome = assert(process:wait(60))
  lu.assertEquals(outcome.exit_code, 137, self:said(name))
  wait_until("nothing of the " .. name, function() return census.gone(pid, children) end)
  self.kills = self.kills + 1
end

function Loop:trainers(random)
  for n, away in ipairs(AWAY) do
    local process <close>, pid = self:trainer()
    self:kill("trainer", process, pid, 0.25 * n - 0.2, 0.25 * n - 0.05, random)
    ab.async.sleep(away)
  end
  local process <close> = self:trainer()
  lu.assertEquals(assert(process:wait()).exit_code, 0, self:said "trainer")
end

function Loop:engines(random)
  local first <close>, pid = self:engine()
  self:kill("engine", first, pid, 0.25, 0.5, random)
  local second <close>, other = self:engine()
  lu.assertEquals(assert(second:wait()).exit_code, 0, self:said "engine")
  wait_until("nothing of the engine", function() return census.gone(other, {}) end)
end

-- ---------------------------------------------------------------- what must be true of it

local function lines_of(path)
  local list = {}
  for line in assert(ab.fs.read(path, 1 << 30)):gmatch "([^\n]*)\n" do list[#list + 1] = assert(ab.json.decode(line)) end
  return list
end

-- Each group that was closed was used once, or had become too old; each task has one.
local function check_groups(loop)
  local closed, tasks, old, used, members = {}, {}, 0, 0, {}
  for _, group in ipairs(lines_of(loop.run .. "/groups.jsonl")) do
    lu.assertNil(closed[group.seq])
    lu.assertNil(tasks[group.task_id], "a task came twice")
    closed[group.seq], tasks[group.task_id] = "closed", true
  end
  for _, line in ipairs(lines_of(loop.run .. ".used")) do
    lu.assertEquals({ line.seq, closed[line.seq] }, { line.seq, "closed" })
    closed[line.seq], used = "used", used + 1
    lu.assertTrue(line.version - line.version_min <= STALENESS, ab.json.encode(line))
    lu.assertEquals(#line.members, SIZE)
    lu.assertTrue(line.rows >= SIZE)
    for _, id in ipairs(line.members) do
      lu.assertNil(members[id], "a rollout was used twice")
      members[id] = line
    end
  end
  for _, event in ipairs(lines_of(loop.run .. "/events.jsonl")) do
    if event.kind == "stale_group" and closed[event.seq] ~= "old" then
      lu.assertEquals({ event.seq, closed[event.seq] }, { event.seq, "closed" })
      closed[event.seq], old = "old", old + 1
    elseif event.kind == "stale" then
      loop.again = loop.again + 1
    end
  end
  lu.assertEquals({ #closed, used + old }, { loop.fed, loop.fed }, "a group was lost")
  for i = 1, loop.fed do lu.assertTrue(tasks["t" .. i], i) end
  lu.assertEquals(ab.json.decode(ab.fs.read(loop.run .. "/cursor.json")).acknowledged, loop.fed)
  return members, used, old
end

-- The weights that the record names are those that the server was asked for and answered as, and were the newest at some
-- moment between the beginning of the call and its answer.
local function check_call(loop, t, call)
  lu.assertEquals(#call.versions, 1)
  local version, served = call.versions[1].v, "policy@" .. call.versions[1].v
  lu.assertEquals(call.model, served)
  for _, side in ipairs { "request", "response" } do
    lu.assertEquals(ab.json.decode(assert(t:body(call, side))).model, served)
  end
  local own, next_one = loop.told[version], loop.told[version + 1]
  lu.assertTrue(own.asked <= call.t[3], "weights of the future")
  lu.assertTrue(not next_one or call.t[1] <= next_one.told, "weights of the past")
end

local function check_record(loop, members)
  local calls = 0
  for t in ab.traj.each(loop.run) do
    local line = members[t.id]
    members[t.id] = nil
    for call in t:calls() do
      if not call.error then
        check_call(loop, t, call)
        calls = calls + 1
        lu.assertTrue(not line or call.versions[1].v >= line.version_min and call.versions[1].v <= line.version_max)
      end
    end
    if t.scored then lu.assertTrue(t.version_max - t.version_min <= STALENESS, t.id) end
  end
  lu.assertNil(next(members), "a rollout that was used is not in the record")
  lu.assertEquals(assert(require "agentbox.store.check".check(loop.run)).problems, {})
  return calls
end

-- Makes what an engine makes once, so that the loop that follows is not taken for one that leaves it behind, and run again.
function M.test_a_sandbox_and_a_server_are_there()
  local sb <close> = live.sandbox "native"
  lu.assertEquals(assert(sb:exec "echo here").stdout, "here\n")
  lu.assertEquals(fakellm.stats().requests, 0)
end

function M.test_weights_change_and_everybody_is_killed()
  local dir <close> = setmetatable({ path = assert(ab.fs.tmpdir "agentbox-online-") }, {
    __close = function(self) assert(ab.fs.remove(self.path, true)) end,
  })
  local random = rand.new(14)
  local fake = fakellm.script(script(random))
  local box <close> = assert(ab.sandbox.create { backend = "none" })
  local loop = setmetatable({
    box = box, run = dir.path .. "/run", url = fake.url, kills = 0, fed = 0, again = 0, began = ab.time.monotonic(),
    told = { { version = 1, asked = 0, told = 0 } },
  }, Loop)
  ab.async.scope(function(scope)
    for _, part in ipairs { "engines", "trainers", "announce", "feed" } do scope:spawn(loop[part], loop, random) end
  end)
  local members, used, old = check_groups(loop)
  local calls = check_record(loop, members)
  print(("%d groups used, %d too old, %d rollouts made again, %d calls, %d versions"):format(used, old, loop.again, calls, VERSIONS))
  lu.assertEquals(loop.kills, #AWAY + 1)
  lu.assertTrue(not SOAK or old > 0 and loop.again > 0, "nothing became too old: nothing shows what becomes of that")
end

return M

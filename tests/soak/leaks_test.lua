-- Rollouts by the hundred (5,000 with AGENTBOX_SOAK) that end in every way: at any moment there are as many sandboxes as
-- rollouts in flight, and at the end nothing. And an end at each stage, by a cancel and by kill -9.
local ab = require "agentbox"
local lu = require "luaunit"

local here = arg[0]:match "^(.*)/[^/]*$"
local census = dofile(here .. "/../support/census.lua")
local binary = assert(ab.fs.realpath "/proc/self/exe")

local COUNT = os.getenv "AGENTBOX_SOAK" and 5000 or 120
local AT_ONCE, JUDGES, CREATING = 16, 4, 4

local M = {}
local dir

function M.setUp() dir = assert(ab.fs.tmpdir "agentbox-leaks-") end

function M.tearDown() assert(ab.fs.remove(dir, true)) end

local function wait_until(what, fn)
  local deadline = ab.time.monotonic() + 60
  while not fn() do
    assert(ab.time.monotonic() < deadline, "in vain: " .. what)
    ab.async.sleep(0.02)
  end
end

local function bash(command) return { tool_calls = { { name = "run_command", arguments = { command = command } } } } end

-- What happens to the rollouts, in turn.
local KINDS = {
  { turns = { bash "sleep 600 & true", "done" } },
  { turns = { bash "echo x > a", bash "cat a", "done" }, fields = { files = { ["b"] = "b" }, setup_commands = { "sleep 600 & true" } } },
  { turns = { "done" }, fields = { setup_commands = { "exit 1" } } },
  { turns = { bash "kill -9 1; kill -9 -1", "done" } },
  { turns = { bash "sleep 600", "done" }, opts = { step_timeout_s = 0.2 } },
  { turns = { "done" }, fields = { verifier = { type = "command", command = "sleep 600", timeout_s = 0.2 } } },
  { turns = { "done" }, opts = { verifier = function() error "a defect" end } },
  { model = function() return nil, require "agentbox.err".new("model", "no") end },
  { turns = { bash "true", "done" }, aborted = true },
}

local function prepare(task)
  local kind = KINDS[(tonumber(task.task_id) - 1) % #KINDS + 1]
  local opts = {}
  for key, value in pairs(kind.opts or {}) do opts[key] = value end
  opts.model = kind.model or ab.model.scripted(kind.turns)
  return opts
end

local function stream()
  local n = 0
  return function()
    n = n + 1
    if n > COUNT then return nil end
    local task = { task_id = tostring(n), description = "d", verifier = { type = "command", command = "true" } }
    for key, value in pairs(KINDS[(n - 1) % #KINDS + 1].fields or {}) do task[key] = value end
    return task
  end
end

local function run_all()
  local run <close> = assert(ab.runner.start { tasks = stream(), model = ab.model.scripted { "done" }, prepare = prepare,
    concurrency = AT_ONCE, limits = { creating = CREATING, judges = JUDGES }, out = dir, run_id = "r", agentbox_json = false,
    attempts = 2, retry_wait_s = 0, max_errors = COUNT, quarantine = 1000000, sandbox = { limits = { memory_mb = 256 } } })
  local most, samples, before = 0, 0, census.own()
  while run.state ~= "over" do
    local then_ = run.running
    local live = census.below(require "agentbox.sys.os".pid()) - before.sandboxes
    -- A second one for each that is judged; what begins or ends between the counts is counted by one of them.
    lu.assertTrue(live <= math.max(then_, run.running) + JUDGES + CREATING, ("%d sandboxes, %d rollouts"):format(live, then_))
    for id, one in pairs(run.by_id) do
      local n = tonumber(one.group.task_id)
      if KINDS[(n - 1) % #KINDS + 1].aborted then run:abort(id) end
    end
    most, samples = math.max(most, live), samples + 1
    ab.async.sleep(0.02)
  end
  return run:wait(), most, samples
end

function M.test_live_sandboxes_are_rollouts_in_flight()
  ab.async.each({ 1, 2, 3, 4 }, function() assert(ab.sandbox.create()):close() end) -- what is made once is made by now
  local before = census.own()
  local sum, most, samples = run_all()
  lu.assertEquals({ sum.rollouts, sum.failure }, { COUNT })
  lu.assertTrue(most >= 4 and samples > 10, ("%d in %d samples"):format(most, samples))
  lu.assertTrue(sum.solved > COUNT // 5, "too few of them ended well")
  require "agentbox.sys.sandbox".forget()
  collectgarbage()
  wait_until("the end of everything", function()
    local now = census.own()
    return now.sandboxes == before.sandboxes and now.processes <= before.processes and now.descriptors <= before.descriptors
      and now.mounts <= before.mounts and now.cgroups <= before.cgroups
  end)
end

-- ---------------------------------------------------------------- at each stage

-- Fields of a task, and a model as Lua text, with which a rollout stays where the name says.
local STAGES = {
  setup = function(stay) return { setup_commands = { stay } } end,
  model = function() return nil, "function() ab.async.sleep(600) end" end,
  tool = function(stay)
    return nil, ("ab.model.scripted { { tool_calls = { { name = 'run_command', arguments = { command = '%s' } } } }, 'done' }"):format(stay)
  end,
  verifier = function(stay) return { verifier = { type = "command", command = stay, timeout_s = 600 } } end,
}

local SCRIPT = [[
local ab = require "agentbox"
local run = assert(ab.runner.start { tasks = { %s }, model = %s, concurrency = 2, n = 2, attempts = 1, agentbox_json = false, out = %q,
  run_id = "r", sandbox = { backend = "native" }, on_event = function() end })
local n = 0
while run.state ~= "over" do
  ab.async.sleep(0.02)
  if ab.fs.exists(%q) then
    for id in pairs(run.by_id) do run:abort(id) end
  end
end
]]

-- Its sleep is no other's.
local function script_of(name, stay)
  local task = { task_id = "t", description = "d", verifier = { type = "command", command = "true" } }
  local fields, model = STAGES[name](stay)
  for key, value in pairs(fields or {}) do task[key] = value end
  return SCRIPT:format(("ab.json.decode(%q)"):format(ab.json.encode(task)), model or "ab.model.scripted { 'done' }",
    dir .. "/out-" .. name, dir .. "/end-" .. name)
end

-- Two rollouts in that stage: by their sleeping commands, or, where the model is asked, by their sandboxes alone.
local function there(name, pid, stay)
  if census.below(pid) < 2 then return false end
  if name == "model" then return true end
  local command, sleeping = stay:gsub(" ", "\0") .. "\0", 0
  for _, entry in ipairs(assert(ab.fs.list "/proc")) do
    local line = entry.name:find "^%d+$" and ab.fs.read(("/proc/%s/cmdline"):format(entry.name), 1 << 16)
    if line == command then sleeping = sleeping + 1 end
  end
  return sleeping >= 2
end

local function launch(name)
  local stay = ("sleep %d.5"):format(require "agentbox.sys.rand".new(name .. dir):int(100000, 900000))
  local path, log = ("%s/%s.lua"):format(dir, name), ("%s/%s.log"):format(dir, name)
  assert(ab.fs.write(path, script_of(name, stay)))
  local pipe <close> = assert(io.popen(("TMPDIR='%s' '%s' script '%s' >'%s' 2>&1 & echo $!"):format(dir, binary, path, log)))
  local pid = assert(pipe:read "n")
  wait_until(name .. ": two rollouts", function()
    assert(ab.fs.exists(("/proc/%d"):format(pid)), "the engine ended")
    return there(name, pid, stay)
  end)
  return pid, log
end

for name in pairs(STAGES) do
  M["test_kill_9_in_stage_" .. name] = function()
    local pid = launch(name)
    local children = census.children(pid)
    lu.assertTrue(#children > 0)
    os.execute(("kill -9 %d"):format(pid))
    wait_until("nothing of it", function() return census.gone(pid, children) end)
    lu.assertEquals(assert(require "agentbox.store.check".check(("%s/out-%s/r"):format(dir, name))).problems, {})
  end

  M["test_abort_in_stage_" .. name] = function()
    local pid, log = launch(name)
    local children = census.children(pid)
    assert(ab.fs.write(dir .. "/end-" .. name, ""))
    wait_until("nothing of it", function() return census.gone(pid, children) end)
    local count = 0
    for t in ab.traj.each(("%s/out-%s/r"):format(dir, name)) do
      count = count + 1
      lu.assertEquals({ t.scored, t.stop_reason }, { false, "user_cancel" })
    end
    lu.assertEquals(count, 2, assert(ab.fs.read(log)))
  end
end

return M

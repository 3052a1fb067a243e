--- The child of crash_test.lua: a run of COUNT rollouts in groups of four, whose groups are delivered and acknowledged, until
--- it is done or killed. Started again, it goes on. What it delivers it writes down first, as a trainer would train.
---
---     agentbox script crash_run.lua DIR COUNT
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local store = require "agentbox.store"

local dir, count = arg[1], tonumber(arg[2])
-- Small, so that a short run has several files.
store.SEGMENT_BYTES = 200000
require "agentbox.store.planes".FILE_BYTES = 100000

local tasks = {}
for i = 1, count // 4 do tasks[i] = { task_id = "t" .. i, description = "d" .. i, verifier = { command = "true" } } end

local function numbers(n, from, step)
  local list = {}
  for i = 1, n do list[i] = from + i * step end
  return assert(json.raw(json.encode(json.array(list))))
end

-- What a rollout does follows from its task and seed alone: a run that was killed must end as one that was not.
local policy = { name = "policy@3" }

function policy.describe() return { name = "policy@3", kind = "test" } end

function policy.close() end

function policy.complete(_, request)
  local n = tonumber(request.messages[#request.messages].content:match "d(%d+)" or 0)
  local message = { role = "assistant", content = ("answer %d"):format(n) }
  local long = n % 3 == 0 and 3000 or 5
  local now = ab.time.now()
  return {
    message = message, finish = { raw = "stop", norm = "stop" }, usage = { prompt = 4, completion = long, total = long + 4 },
    tokens = { src = "engine", prompt = numbers(4, n, 1), out = numbers(long, n, 1), lp = numbers(long, 0, -0.001) },
    raw_response = n % 5 == 0 and ("{\n\"n\": %d\n}"):format(n) or json.encode(message), served_model = "policy@3",
    tries = 1, times = { queued = now, first = now, done = now },
  }
end

local function verify() return 1.0 end

local resume = fs.stat(dir .. "/run") ~= nil and fs.stat(dir .. "/run/run.json") ~= nil
local run = assert(ab.runner.start {
  tasks = tasks, group_size = 4, model = policy, verifier = verify, sandbox = { backend = "none" }, concurrency = 8,
  out = dir, run_id = "run", resume = resume, seed = 1,
})
local delivered = assert(fs.append_open(dir .. "/delivered"))
for group in run:groups() do
  assert(delivered:write(("%d %s\n"):format(group.seq, group.id)))
  assert(run:ack(group))
end
run:close()
io.stdout:write "done\n"
return 0

--- Runs of many rollouts. What Prometheus is told of them.
local gate = require "agentbox.async.gate"
local http = require "agentbox.http"
local runner = require "agentbox.runner"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))
local test = require "agentbox.test"

local M = {}

-- The page as { [name and labels] = number }, and the type of each family.
local function parse(text)
  local samples, types = {}, {}
  for line in text:gmatch "([^\n]*)\n" do
    local name, kind = line:match "^# TYPE (%S+) (%S+)$"
    if name then
      types[name] = kind
    elseif line:sub(1, 1) ~= "#" then
      local key, value = line:match "^(%S.*) (%S+)$"
      test.ok(samples[key] == nil, key .. " comes twice")
      samples[key] = assert(tonumber(value), line)
    end
  end
  return samples, types
end

-- Symptom: the end of a run told a median longer than the whole run.
function M.test_percentiles_are_near_and_never_beyond_what_there_was()
  local tally = require "agentbox.runner.tally".new()
  for i = 1, 100 do tally:ended { final_status = "success", scored = true, reward = 1, duration_s = i / 10 } end
  for p, truth in pairs { [0.5] = 5, [0.9] = 9, [0.99] = 9.9 } do
    local got = tally:percentile(p)
    test.ok(math.abs(got - truth) <= 0.011 * truth and got <= 10, ("p%g is %g"):format(100 * p, got))
  end
  local one = require "agentbox.runner.tally".new()
  one:ended { final_status = "success", scored = true, reward = 1, duration_s = 6.1 }
  test.eq({ one:percentile(0.5), one:percentile(0.99) }, { 6.1, 6.1 })
end

-- Symptom: buckets of 0.0038147, 0.0145519, ... and three of them for all that a rollout may take.
function M.test_the_histogram_counts_what_took_at_most_that_long()
  local tallies = require "agentbox.runner.tally"
  local tally = tallies.new()
  for _, s in ipairs { 0.05, 0.1, 2.5, 2.6, 9000 } do tally:ended { final_status = "success", scored = true, reward = 1, duration_s = s } end
  local within, n = tally:histogram()
  local of = {}
  for i, bound in ipairs(tallies.BOUNDS) do of[bound] = within[i] end
  test.eq({ of[0.1], of[0.25], of[2.5], of[5], of[3600], n }, { 2, 2, 3, 4, 4, 5 })
end

function M.test_the_numbers_are_those_of_the_run()
  local door = gate.new(1)
  local pass = door:enter()
  local run <close> = runs.start {
    tasks = runs.tasks(4), n = 2, metrics = "127.0.0.1:0", max_lead = 9, policy = { version = 3 },
    model = runs.by_member(function(name, index)
      if name == "t4" and index == 1 then door:enter():release() end
      return "done"
    end),
    verifier = function(ev) return ev.traj.task_id == "t1" and 0.25 or 1 end,
  }
  while run.tally.rollouts < 7 or run.tally.groups.closed < 3 do run:_await(1) end
  local at = run.metrics_server.url
  local response = assert(http.request { url = at .. "/metrics", proxy = false, keep_alive = false })
  test.eq(response.headers:get "Content-Type", "text/plain; version=0.0.4; charset=utf-8")
  local now, types = parse(response.body)
  test.eq(now.agentbox_rollouts_running, 1)
  test.eq(now['agentbox_groups_total{kind="whole"}'], 3)
  test.eq({ now.agentbox_groups_unacknowledged, now.agentbox_groups_max_lead, now.agentbox_weights_version }, { 3, 9, 3 })
  test.eq({ now.agentbox_reward_sum, now.agentbox_reward_count }, { 5.5, 7 })
  test.eq(now['agentbox_rollout_duration_seconds_bucket{le="+Inf"}'], 7)
  test.eq(now.agentbox_rollout_duration_seconds_count, 7)
  test.ok(now.process_resident_memory_bytes > 1e6)
  test.eq({ types.agentbox_rollout_duration_seconds, types.agentbox_reward, types.agentbox_attempts_total },
    { "histogram", "summary", "counter" })
  pass:release()
  run:wait()
  test.fails("network", http.request { url = at .. "/metrics", proxy = false })
end

function M.test_an_address_that_cannot_be_had_starts_nothing()
  local taken <close> = runs.start { tasks = runs.tasks(1), metrics = "127.0.0.1:0" }
  local tmp <close> = runs.tmp()
  test.fails("sys", runner.start {
    tasks = runs.tasks(1), model = runs.done(), out = tmp.path, run_id = "r", metrics = taken.metrics_server.address,
  })
  test.fails("badarg", runner.start { tasks = runs.tasks(1), model = runs.done(), metrics = "0.0.0.0:0" })
end

return M

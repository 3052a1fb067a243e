--- The engine without sandboxes: start, parsing, turns, what a waiting rollout costs.
local ab = require "agentbox"
local peer = require "peer"
local report = require "report"

local here = assert(ab.fs.realpath(arg[0]:match "^(.*)/[^/]*$" or "."))
local binary = assert(ab.fs.realpath(here .. "/../build/agentbox"))

--- The Python reference at 8 rollouts at once, in-process model and no-op sandbox, as its inventory measured it.
local REFERENCE_TURNS_PER_S = 3300

local function first_line(rounds)
  local samples = {}
  for _ = 1, rounds do
    for _, us in ipairs(peer.time("first", 20, { binary, "script", here .. "/first_line.lua" })) do samples[#samples + 1] = us end
  end
  local us = report.quantile(samples, 0.5)
  report.row { what = "exec to the first line of user Lua", ours = report.us(us), value = us / 1000, unit = "ms",
    must = 10, stretch = 5, better = "less" }
end

--- A chat completion with 3 MB of log-probs, as vLLM sends it.
local function big_reply()
  local entries = {}
  for i = 1, 20000 do
    entries[i] = ('{"token":"tok%d","logprob":-%d.%d,"bytes":[116,111,107],"top_logprobs":[{"token":"a","logprob":-0.1,'
      .. '"bytes":[97]},{"token":"b","logprob":-2.5,"bytes":[98]}]}'):format(i, i % 7, i)
  end
  return ('{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop",'
    .. '"logprobs":{"content":[%s]}}],"usage":{"prompt_tokens":5,"completion_tokens":20000,"total_tokens":20005}}')
    :format(table.concat(entries, ","))
end

local function parse(rounds)
  local text, samples = big_reply(), {}
  for _ = 1, rounds * 10 do
    local began = os.clock()
    local reply = assert(ab.json.decode(text, { raw = { "logprobs" } }))
    local slice = reply.choices[1].logprobs:text()
    samples[#samples + 1] = (os.clock() - began) * 1e6
    assert(#slice > 2500000)
  end
  local us = report.quantile(samples, 0.5)
  report.row { what = ("parse and slice a %.1f MB log-prob reply (CPU)"):format(#text / 1e6), ours = report.us(us),
    value = us / 1000, unit = "ms", must = 5, better = "less" }
end

local noop = ab.tool.define {
  api = 1, name = "noop", description = "Does nothing.", parameters = { { "n", "integer", "any" } }, independent = true,
  run = function() return "ok" end,
}

local function quick_task()
  return ab.task.new { task_id = "noop", description = "Do nothing.", verifier = { type = "command", command = "true" } }
end

local function turns(rounds)
  local per_rollout, at_once, samples = 20, 8, {}
  local script = { last = "done" }
  for i = 1, per_rollout do script[i] = { tool_calls = { { name = "noop", arguments = { n = i } } } } end
  for _ = 1, rounds do
    local began, count = ab.time.monotonic(), 100
    local jobs = {}
    for i = 1, count do jobs[i] = i end
    ab.async.each(jobs, function()
      local traj = assert(ab.rollout.run {
        task = quick_task(), model = ab.model.scripted(script), custom_tools = { noop }, tools = "custom",
        sandbox = { backend = "none" }, verifier = function() return 1 end, max_steps = 100,
      })
      assert(traj.metrics.steps == per_rollout, traj.stop_reason)
    end, { limit = at_once })
    samples[#samples + 1] = count * per_rollout / (ab.time.monotonic() - began)
  end
  local rate = report.quantile(samples, 0.5)
  report.row { what = "turns per second, in-process model, no-op tool", ours = ("%.0f/s"):format(rate),
    peer = ("reference %d/s (recorded)"):format(REFERENCE_TURNS_PER_S), value = rate / REFERENCE_TURNS_PER_S, unit = "x",
    must = 10, better = "more" }
end

--- 1,000 rollouts whose model server has the request and does not answer. A process of its own, so that nothing else counts.
local function waiting()
  local said = peer.output { binary, "script", here .. "/waiting.lua", "1000" }
  local mb = tonumber(said:match "([%d.]+) MB")
  assert(mb, "bench/waiting.lua failed: " .. said)
  report.row { what = "engine memory, 1,000 rollouts waiting for a model server", ours = ("%.1f MB"):format(mb),
    value = mb, unit = "MB", must = 60, better = "less" }
end

return function(rounds)
  first_line(rounds)
  parse(rounds)
  turns(rounds)
  waiting()
end

--- The engine without sandboxes: start, parsing, turns, what a waiting rollout costs.
local ab = require "agentbox"
local peer = require "peer"
local report = require "report"

local here = assert(ab.fs.realpath(arg[0]:match "^(.*)/[^/]*$" or "."))
local binary = assert(ab.fs.realpath(here .. "/../build/agentbox"))

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
    ab.async.yield() -- a reply arrives in a turn of its own, and what the last one left is collected between two
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


--- One run of ours, one of the reference, in turn. Where rollouts are recorded, ours are synced and the reference's are
--- written as its command line does.
local function turns(rounds)
  local python, count, length = peer.reference(), "200", "20"
  for _, case in ipairs {
    { "noop", "8", "none", "turns per second, a tool that does nothing, 8 at once", must = 10 },
    { "run_command", "8", "none", "turns per second, run_command in a free sandbox, 8 at once", must = 10 },
    { "run_command", "64", "none", "the same, 64 at once" },
    { "run_command", "8", "record", "the same, 8 at once, recorded" },
    { "run_command", "64", "record", "the same, 64 at once, recorded" },
  } do
    local tool, at_once, record, what = table.unpack(case)
    local ours, theirs = {}, {}
    for i = 1, rounds do
      ours[i] = peer.number { binary, "script", here .. "/turns.lua", tool, at_once, count, length, record }
      if python then theirs[i] = peer.number { python, here .. "/reference.py", tool, at_once, count, length, record } end
    end
    local mine, its = report.quantile(ours, 0.5), python and report.quantile(theirs, 0.5)
    report.row { what = what, ours = ("%.0f/s"):format(mine), peer = its and ("reference %.0f/s"):format(its),
      value = its and mine / its, unit = "x", must = its and case.must, better = "more" }
  end
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

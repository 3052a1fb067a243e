--- Thousands of rollouts at once beside a model that takes a second, and what their parts cost alone on this machine.
---
---     agentbox script bench/measure_runner.lua [ROLLOUTS] [SLOW-LLM] [SVG]
---
--- SVG is a file for the plot of what was in flight. As a part of bench/run.lua there are fewer rollouts.
local ab = require "agentbox"
local os_ = require "agentbox.sys.os"
local report = require "report"

local here = assert(ab.fs.realpath(arg[0]:match "^(.*)/[^/]*$" or "."))
local TURNS, LATENCY_S = 10, 1
local CORES = 2
local FEW = 300 -- in `make bench`, and of those without turns
local clock = ab.time.monotonic

local function server_says(port, word)
  local text = assert(ab.http.request { url = ("http://127.0.0.1:%d/%s"):format(port, word), proxy = false }).body
  local requests, peak, cpu_s = text:match "requests=(%d+) peak=(%d+) cpu_s=([%d.]+)"
  return { requests = tonumber(requests), peak = tonumber(peak), cpu_s = tonumber(cpu_s) }
end

-- Ends with the block, on every path: closing the pipe waits for it.
local function start_server(program, latency_s)
  local pipe = assert(io.popen(("exec %s %d %d true"):format(program, latency_s * 1000, TURNS)))
  local port = assert(pipe:read "n", "the server did not start")
  return setmetatable({ port = port, pipe = pipe }, { __close = function(self)
    if not self.said then server_says(port, "quit") end
  end })
end

local function numbers(n)
  local list = {}
  for i = 1, n do list[i] = i end
  return list
end

local function task_of(i)
  return { task_id = "t" .. i, description = "Run true.", verifier = { type = "command", command = "true" } }
end

-- Seconds of a rollout whose model only says that it is done.
local function turnless_s(backend, count, at_once)
  local began = clock()
  ab.async.each(numbers(count), function(i)
    local t = assert(ab.rollout.run { task = ab.task.new(task_of(i)), model = ab.model.scripted { "done" }, sandbox = { backend = backend } })
    assert(t.reward == 1, t.stop_reason)
  end, { limit = at_once })
  return (clock() - began) / count
end

--- Seconds that creation and verification take of this machine when nothing else is done, with as many at once as the run
--- has: of a rollout without turns, what it takes more than one in sandboxes that cost nothing.
local function sandboxes_s(count, at_once)
  return turnless_s("native", count, at_once) - turnless_s("free", count, at_once)
end

--- Seconds of a command alone, of ten in each sandbox.
local function command_s(boxes, at_once)
  local began = clock()
  local count = TURNS * #boxes
  ab.async.each(numbers(count), function(i) assert(boxes[i % #boxes + 1]:exec "true") end, { limit = at_once })
  return (clock() - began) / count
end

--- What the parts cost alone: beside as many sandboxes as the run has, as the kernel needs more for each where there are
--- many.
local function alone(count, limits)
  local boxes = {}
  ab.async.each(numbers(count), function(i) boxes[i] = assert(ab.sandbox.create()) end, { limit = limits.creating })
  local costs = { command = command_s(boxes, limits.commands), sandboxes = sandboxes_s(FEW, limits.creating) }
  ab.async.each(boxes, function(box) box:close() end, { limit = limits.creating })
  return costs
end

local function cpu_s()
  local text = assert(ab.fs.read "/proc/self/stat")
  local user, system = text:match "^.*%) %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (%d+) (%d+)"
  return (tonumber(user) + tonumber(system)) / 100
end

-- Samples while the run goes on: what is in flight, and the engine's memory.
local function watch(run, samples)
  return ab.async.spawn(function()
    local began = clock()
    while run.state ~= "over" do
      local stats = run:stats()
      samples[#samples + 1] = { t = clock() - began, rollouts = stats.running, calls = stats.calls, rss = os_.memory_rss(), heap = collectgarbage "count",
        ended = stats.numbers.rollouts }
      ab.async.sleep(0.5)
    end
  end)
end

local function measure(count, program)
  local dir = assert(ab.fs.tmpdir "agentbox-bench-")
  local server <close> = start_server(program, LATENCY_S)
  local samples = {}
  local limits = { creating = 16, commands = 32, judges = 32 } -- several times the cores, as the engine has turns of its own between
  local model = ab.model.open { model = "m", base_url = ("http://127.0.0.1:%d/v1"):format(server.port), timeout_s = 600 }
  local before = alone(count, limits)
  local cpu = cpu_s()
  local made = 0
  local run <close> = assert(ab.runner.start {
    tasks = function()
      made = made + 1
      if made > count then return nil end
      return task_of(made)
    end,
    model = model, concurrency = count, limits = limits, lookahead = 64, out = dir, agentbox_json = false,
    max_steps = TURNS + 5, timeout_s = 3600,
  })
  local began = clock()
  local watcher = watch(run, samples)
  local sum = run:wait()
  local wall = clock() - began
  watcher:join()
  cpu = cpu_s() - cpu
  local after = alone(count, limits)
  server.said = server_says(server.port, "quit")
  local stored = 0
  for _, entry in ipairs(assert(ab.fs.list(sum.run_dir))) do
    stored = stored + (ab.fs.stat(sum.run_dir .. "/" .. entry.name).size or 0)
  end
  assert(ab.fs.remove(dir, true))
  return {
    sum = sum, wall = wall, cpu = cpu, server = server.said, samples = samples, stored = stored,
    sandboxes_s = (before.sandboxes + after.sandboxes) / 2, command_s = (before.command + after.command) / 2,
    creations = run.limits.creating.entered,
  }
end

local function bound_of(m)
  local parts = {
    latency = (TURNS + 1) * LATENCY_S, sandboxes = m.sum.rollouts * m.sandboxes_s, commands = m.sum.steps * m.command_s,
    server = m.server.cpu_s / CORES,
  }
  parts.all = parts.latency + parts.sandboxes + parts.commands + parts.server
  return parts
end

local function plot(samples)
  local most, lines = 1, {}
  for _, one in ipairs(samples) do most = math.max(most, one.rollouts) end
  local every = math.max(1, #samples // 24)
  for i = 1, #samples, every do
    local one = samples[i]
    local width = math.floor(50 * one.rollouts / most + 0.5)
    local calls = math.min(width, math.floor(50 * one.calls / most + 0.5))
    lines[#lines + 1] = ("%6.1f s |%s%s%s| %4d rollouts, %4d in a model call, %4d ended"):format(one.t, ("#"):rep(calls),
      ("-"):rep(width - calls), (" "):rep(50 - width), one.rollouts, one.calls, one.ended)
  end
  return table.concat(lines, "\n")
end

local function peak(samples, name)
  local most = 0
  for _, one in ipairs(samples) do most = math.max(most, one[name]) end
  return most
end

-- A line through the samples, for each of what is counted.
local function svg(samples)
  local width, height, most, last = 720, 240, 1, samples[#samples].t
  for _, one in ipairs(samples) do most = math.max(most, one.rollouts) end
  local out = { ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">')
    :format(width + 60, height + 50), '<rect width="100%" height="100%" fill="#fff"/>' } -- also on a dark page
  local function text(x, y, words, color)
    out[#out + 1] = ('<text x="%d" y="%d" fill="%s">%s</text>'):format(x, y, color or "#444", words)
  end
  for at, line in ipairs { { "rollouts", "#1f77b4", "rollouts in flight" }, { "calls", "#d62728", "model calls" } } do
    local points = {}
    for i, one in ipairs(samples) do
      points[i] = ("%.0f,%.0f"):format(50 + width * one.t / last, 10 + height * (1 - one[line[1]] / most))
    end
    out[#out + 1] = ('<polyline fill="none" stroke="%s" points="%s"/>'):format(line[2], table.concat(points, " "))
    text(200 * at, height + 45, line[3], line[2])
  end
  text(5, 20, ("%d"):format(most))
  text(50, height + 25, "0 s")
  text(width + 10, height + 25, ("%.0f s"):format(last))
  out[#out + 1] = "</svg>"
  return table.concat(out, "\n") .. "\n"
end

local function tell(count, m, bound)
  local sum = m.sum
  local function say(...) print((...):format(select(2, ...))) end
  say("%d rollouts at once, %d turns with a command each, a model of %g s", count, TURNS, LATENCY_S)
  say("ended %d, solved %d, unscored %d", sum.rollouts, sum.solved, sum.unscored)
  say("wall              %.1f s", m.wall)
  say("lower bound       %.1f s = %.1f latency + %.1f creation and verification (%d x %.2f ms) + %.1f commands (%d x %.2f ms) + %.1f server",
    bound.all, bound.latency, bound.sandboxes, sum.rollouts, m.sandboxes_s * 1e3, bound.commands, sum.steps, m.command_s * 1e3,
    bound.server)
  say("ratio             %.2f", m.wall / bound.all)
  say("engine CPU        %.1f s, %.0f us a turn", m.cpu, m.cpu / math.max(1, sum.steps + sum.rollouts) * 1e6)
  say("engine memory     %.0f MB at most, %.0f MB of it Lua's", peak(m.samples, "rss") / 1e6, peak(m.samples, "heap") / 1e3)
  say("record            %.1f MB, %.1f KB a rollout", m.stored / 1e6, m.stored / 1e3 / math.max(1, sum.rollouts))
  for _, name in ipairs { "rollouts", "model_calls", "creating", "commands", "judges" } do
    local one = sum.peaks[name]
    say("peak %-12s %d%s", name, one.peak, one.max and (" of %d"):format(one.max) or "")
  end
  say("server            %d requests, %d held at once, %.1f s of CPU", m.server.requests, m.server.peak, m.server.cpu_s)
  print(plot(m.samples))
end

local function main(count, program, path)
  ab.log.set_level "error"
  local m = measure(count, program)
  tell(count, m, bound_of(m))
  if path then assert(ab.fs.write(path, svg(m.samples))) end
end

local SLOW_LLM = here .. "/../build/release/bench/bench-slow-llm"

if arg[0]:find "measure_runner%.lua$" then main(tonumber(arg[1]) or 2000, arg[2] or SLOW_LLM, arg[3]) end

-- The same turns through an HTTP client, ours and the reference's, in turn; commands cost neither of them anything.
local function over_http(rounds)
  local peer = require "peer" -- needs its programs, which the rest does not
  local binary, python = assert(ab.fs.realpath "/proc/self/exe"), peer.reference()
  local server <close> = start_server(SLOW_LLM, 0.05)
  local url = ("http://127.0.0.1:%d/v1"):format(server.port)
  for _, record in ipairs { "none", "record" } do
    local ours, theirs = {}, {}
    for i = 1, rounds do
      local work = { "run_command", "64", "100", tostring(TURNS), record, url }
      ours[i] = peer.number { binary, "script", here .. "/turns.lua", table.unpack(work) }
      if python then theirs[i] = peer.number { python, here .. "/reference.py", table.unpack(work) } end
    end
    local mine, its = report.quantile(ours, 0.5), python and report.quantile(theirs, 0.5)
    report.row { what = "engine CPU a turn over HTTP, 64 at once" .. (record == "record" and ", recorded" or ""),
      ours = report.us(mine), peer = its and "reference " .. report.us(its), value = its and its / mine, unit = "x", must = its and 10,
      better = "more" }
  end
end

--- The rows of `make bench`.
return function(rounds)
  over_http(rounds)
  local m = measure(FEW, SLOW_LLM)
  local bound = bound_of(m)
  assert(m.sum.solved == FEW, "rollouts failed")
  report.row { what = ("%d rollouts at once, a model of %g s, %d turns with a command"):format(FEW, LATENCY_S, TURNS),
    ours = ("%.1f s"):format(m.wall), peer = ("the least it could be %.1f s"):format(bound.all), value = m.wall / bound.all,
    unit = "of it", must = 1.15, better = "less" }
  report.row { what = "the same, engine CPU a turn", ours = report.us(m.cpu / (m.sum.steps + m.sum.rollouts) * 1e6), unit = "" }
  report.row { what = "the same, engine memory at most", ours = ("%.0f MB"):format(peak(m.samples, "rss") / 1e6), unit = "" }
end

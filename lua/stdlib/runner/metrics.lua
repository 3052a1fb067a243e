--- A run in numbers for Prometheus: its text format, served at /metrics.
local http_server = require "agentbox.http_server"
local os_ = require "agentbox.sys.os"
local tallies = require "agentbox.runner.tally"

local M = {}

local TYPE = "text/plain; version=0.0.4; charset=utf-8"

local function escape(value)
  return (tostring(value):gsub("[\\\"\n]", { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }))
end

local function labels_of(labels)
  local names = {}
  for name in pairs(labels or {}) do names[#names + 1] = name end
  if #names == 0 then return "" end
  table.sort(names)
  for i, name in ipairs(names) do names[i] = ('%s="%s"'):format(name, escape(labels[name])) end
  return "{" .. table.concat(names, ",") .. "}"
end

local function number(value)
  if math.type(value) == "integer" then return tostring(value) end
  if value == math.huge then return "+Inf" end
  return ("%.17g"):format(value)
end

---@class agentbox.MetricText
local Text = {}
Text.__index = Text

-- One family; `samples` is a number, or a list of { labels, number, suffix }.
function Text:add(kind, name, help, samples)
  if type(samples) == "number" then samples = { { nil, samples } } end
  if not samples or #samples == 0 then return end
  name = name:find "^process_" and name or "agentbox_" .. name
  local lines = self.lines
  lines[#lines + 1] = ("# HELP %s %s\n# TYPE %s %s\n"):format(name, help, name, kind)
  for _, one in ipairs(samples) do
    lines[#lines + 1] = ("%s%s%s %s\n"):format(name, one[3] or "", labels_of(one[1]), number(one[2]))
  end
end

-- A sample for each key of a map, in order.
local function by(label, map)
  local keys, list = {}, {}
  for key, value in pairs(map or {}) do
    if type(value) == "number" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  for i, key in ipairs(keys) do list[i] = { { [label] = key }, map[key] } end
  return list
end

local function durations(tally)
  local list, within, n = {}, tally:histogram()
  for i, bound in ipairs(tallies.BOUNDS) do list[i] = { { le = ("%g"):format(bound) }, within[i], "_bucket" } end
  list[#list + 1] = { { le = "+Inf" }, n, "_bucket" }
  list[#list + 1] = { nil, tally.duration_s, "_sum" }
  list[#list + 1] = { nil, n, "_count" }
  return list
end

local function rollouts(text, run, n)
  text:add("gauge", "rollouts_running", "Rollouts that run now.", run.running)
  text:add("gauge", "rollouts_wanted", "Rollouts that there will be, where that is known.", run.opts.total)
  text:add("counter", "rollouts_total", "Rollouts that ended for good, by final status.", by("status", n.by_status))
  text:add("counter", "rollouts_unscored_total", "Of them those without a score, by whose doing it was.", by("class", n.by_class))
  text:add("counter", "rollouts_kept_total", "Of them those that an earlier process of the run made.", n.kept)
  text:add("counter", "rollouts_evicted_total", "Stragglers that were given up.", n.evicted)
  text:add("counter", "rollouts_stale_total", "Rollouts ended and made again because their weights were too old.", n.stale)
  text:add("counter", "attempts_total", "Attempts that ended.", n.attempts)
  text:add("counter", "retries_total", "Attempts that were made again, by what failed.", by("class", n.failed_attempts))
  text:add("summary", "reward", "Rewards of the scored rollouts.", { { nil, n.reward_sum + 0.0, "_sum" }, { nil, n.scored, "_count" } })
  text:add("histogram", "rollout_duration_seconds", "From its sandbox to its verdict.", durations(run.tally))
  text:add("counter", "steps_total", "Turns of all attempts.", n.steps)
  text:add("gauge", "bad_tasks", "Tasks that could not be read.", n.bad_tasks)
  text:add("gauge", "quarantined_tasks", "Tasks that were given up.", #n.quarantined)
end

local function group_counts(text, run, n)
  local kinds = { whole = n.groups.whole, partial = n.groups.partial, dropped = n.groups.dropped }
  text:add("counter", "groups_total", "Groups that were closed.", by("kind", kinds))
  text:add("counter", "groups_zero_signal_total", "Of them those whose raw outcomes are all the same.", n.groups.zero_signal)
  text:add("counter", "groups_stale_total", "Of them those that were too old to be given out.", n.stale_groups)
  text:add("gauge", "groups_open", "Groups that have begun.", #run.open)
  text:add("gauge", "groups_unacknowledged", "Closed groups that nobody acknowledged.", run:_unacknowledged())
  text:add("gauge", "groups_max_lead", "How many of those stop new groups.", run.opts.max_lead)
  text:add("counter", "waste_rollouts_total", "Surplus members.", n.waste.rollouts)
  text:add("counter", "waste_tokens_total", "Tokens of surplus members.", n.waste.tokens)
end

local function model(text, run)
  local agent = run.models.agent
  text:add("counter", "model_calls_total", "Calls that were begun.", agent.gate.entered)
  text:add("counter", "model_tries_repeated_total", "Tries of calls that failed and were made again.", agent.repeats)
  text:add("gauge", "model_calls_running", "Calls in flight.", agent.gate.running)
  text:add("gauge", "model_calls_waiting", "Calls that wait for a retry or for room.", agent:waiting())
  text:add("counter", "tokens_total", "Tokens of calls, where the server told them.",
    by("kind", { prompt = agent.prompt_tokens, completion = agent.completion_tokens }))
  text:add("gauge", "weights_version", "As last announced.", agent.version)
  local up, running = {}, {}
  for _, place in ipairs(agent:places() or {}) do
    local url = place.url:gsub("//[^/@]*@", "//"):gsub("%?.*$", "")
    up[#up + 1] = { { server = url }, place.down and 0 or 1 }
    running[#running + 1] = { { server = url }, place.running or 0 }
  end
  text:add("gauge", "server_up", "Whether a model server answers.", up)
  text:add("gauge", "server_calls_running", "Calls in flight by server.", running)
end

local function engine(text, run, n)
  local peaks, max = {}, {}
  for name, one in pairs(run:summary().peaks) do peaks[name], max[name] = one.peak, one.max end
  text:add("gauge", "limit_peak", "The most that there was at once.", by("of", peaks))
  text:add("gauge", "limit_max", "The most that there may be.", by("of", max))
  text:add("gauge", "run_seconds", "Since this process began the run.", n.wall_s)
  text:add("gauge", "run_paused", "Whether it is paused.", run.paused and 1 or 0)
  local full = run.store.full_since
  text:add("gauge", "run_disk_full", "Whether it waits for room on the disk.", full and 1 or 0)
  text:add("counter", "process_cpu_seconds_total", "User and system time of the engine.", os.clock())
  text:add("gauge", "process_resident_memory_bytes", "Resident memory of the engine.", os_.memory_rss())
end

--- The page.
---@param run agentbox.Run
---@return string
function M.text(run)
  local text = setmetatable({ lines = {} }, Text)
  local numbers = run.tally:numbers()
  text:add("gauge", "run_info", "The run.", { { { run = run.run_id, state = run.state }, 1 } })
  rollouts(text, run, numbers)
  group_counts(text, run, numbers)
  model(text, run)
  engine(text, run, numbers)
  return table.concat(text.lines)
end

--- The answer to a scrape.
---@param run agentbox.Run
---@return table
function M.answer(run)
  return { type = TYPE, body = M.text(run) }
end

--- Serves the page at /metrics until the run is over.
---@param run agentbox.Run
---@param opts string|integer|{ listen: string|integer, token?: any }
---@return agentbox.Server?
---@return agentbox.Err? err
function M.serve(run, opts)
  if type(opts) ~= "table" then opts = { listen = opts } end
  return http_server.serve {
    listen = opts.listen, token = opts.token, routes = { ["GET /metrics"] = function() return M.answer(run) end },
  }
end

return M

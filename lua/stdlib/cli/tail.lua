--- `agentbox tail RUN`: what happens in a run, while it happens.
local M = {
  name = "tail",
  summary = "follow what happens in a run",
  description = "Prints the last events of RUN and goes on with those to come, until the run is over: each rollout that "
      .. "ends, attempts made again, groups, tasks given up. RUN is a run's folder, its id below --out, or the beginning of "
      .. "the id of a run that goes on.",
  arguments = { { "run", "the run" } },
  options = {
    { "-n --lines", "N", "events to begin with", integer = true, default = 10 },
    { "--no-follow", "stop at the last event there is" },
    { "-o --out", "DIR", "where runs are", default = "trajectories" },
    { "--json", "print the events as they are recorded, one JSON object a line" },
  },
}

local PAUSE_S = 0.3

local words = {}

function words.rollout(e)
  local out = require "agentbox.cli._out"
  local line = ("%-32s %-9s reward=%s steps=%s %s"):format(e.slot, e.status, out.number(e.reward), e.steps or "-",
    e.duration_s and require "agentbox.cli._summary".duration(e.duration_s) or "-")
  if e.class then line = line .. " class=" .. e.class end
  if e.attempt and e.attempt > 0 then line = line .. (" attempt=%d"):format(e.attempt) end
  return e.msg and line .. ": " .. e.msg or line
end

function words.group(e)
  local kind = e.dropped and "dropped: " .. e.dropped or e.partial and "partial" or "whole"
  return ("group %d %s: %d of %d, %s%s"):format(e.seq or 0, e.id, e.scored or 0, e.size or 0, kind, e.zero_signal and ", no signal" or "")
end

function words.retry(e) return ("%-32s attempt %d failed (%s): %s"):format(e.slot, e.attempt or 0, e.class or "-", e.msg or "-") end

words["end"] = function(e)
  local sum = e.summary or {}
  return ("over%s: %s ended, %s solved, %s unscored"):format(e.why and " (" .. e.why .. ")" or "", sum.rollouts or "-",
    sum.solved or "-", sum.unscored or "-")
end

local function other(e)
  local parts = {}
  for _, name in ipairs { "task_id", "slot", "version", "model", "why", "msg" } do
    if e[name] ~= nil then parts[#parts + 1] = ("%s=%s"):format(name, e[name]) end
  end
  return ("%s %s"):format(e.kind, table.concat(parts, " "))
end

local function print_line(text, args)
  local json, out = require "agentbox.json", require "agentbox.cli._out"
  if args.json then return io.stdout:write(text, "\n") end
  local e = json.decode(text)
  if not json.is_object(e) then return end
  local plain = {}
  for key, value in pairs(e) do
    if value ~= json.null then plain[key] = value end
  end
  local stamp = type(plain.t) == "number" and require "agentbox.time".iso(plain.t):sub(12, 19) or "--:--:--"
  io.stdout:write(stamp, " ", out.line((words[plain.kind] or other)(plain)), "\n")
end

-- Whole lines only: the last one may be half written.
local function reader(path)
  local at, rest = 0, ""
  return function()
    local file <close> = io.open(path, "rb")
    if not file then return {} end
    file:seek("set", at)
    local text = file:read(1 << 20) or ""
    at = at + #text
    local lines = {}
    rest = (rest .. text):gsub("([^\n]*)\n", function(line)
      lines[#lines + 1] = line
      return ""
    end)
    return lines
  end
end

function M.run(args)
  local runs, async = require "agentbox.cli._runs", require "agentbox.async"
  local run_dir, err = runs.find(args.run, args.out or "trajectories")
  if not run_dir then return nil, err end
  local read, last = reader(run_dir .. "/events.jsonl"), {}
  local keep = args.lines or 10
  while true do
    local lines = read()
    if #lines == 0 then break end
    table.move(lines, 1, #lines, #last + 1, last)
    last = table.move(last, math.max(1, #last - keep + 1), #last, 1, {})
  end
  for _, line in ipairs(last) do print_line(line, args) end
  io.stdout:flush()
  while not args.no_follow do
    local state = runs.look(run_dir)
    local lines = read()
    for _, line in ipairs(lines) do print_line(line, args) end
    io.stdout:flush()
    local live = state and state.state ~= "over" and state.state ~= "stopped" and state.state ~= "killed"
    if #lines == 0 and not live then break end
    async.sleep(PAUSE_S)
  end
  return 0
end

return M

--- Exports: megabytes of a run's lines for a second of CPU, for each format, and token planes to JSON.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local plane = require "agentbox.sys.plane"
local report = require "report"

local binary = assert(fs.realpath "/proc/self/exe")
local MEGABYTES, TOKENS, MUST, MUST_PLANES = 30, 200000, 200, 100

--- Each format on the run that it is for: messages of a hosted model, or calls with token ids.
local FORMATS = {
  chat = { "canonical", "openai", "sharegpt", "prompt-completion", "preference", "art", "verifiers", "jsonl", "art:form=exchanges" },
  tokens = { "trl", "verl", "skyrl", "prime-rl", "slime", "openrlhf", "pretokenized" },
}

local function here() return debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "bench" end

local function made(dir, kind)
  local extra = kind == "chat" and "20 1 chat" or "20 1"
  assert(os.execute(("%s script %s/make_run.lua %s %s %d %s >/dev/null"):format(binary, here(), dir, kind, MEGABYTES, extra)))
  local bytes = 0
  for _, entry in ipairs(assert(fs.list(dir .. "/" .. kind))) do
    if entry.name:find "^trajectories" then bytes = bytes + assert(fs.stat(("%s/%s/%s"):format(dir, kind, entry.name))).size end
  end
  return dir .. "/" .. kind, bytes
end

local function speed_of(what, input, bytes, out, rounds)
  local name, settings, options, seconds = what:match "^([^:]+)", what, {}, {}
  for key, value in settings:gmatch "([%w_]+)=([%w_]+)" do options[key] = value end
  for i = 1, rounds do
    collectgarbage()
    local began = os.clock()
    assert(ab.export.convert { input = input, format = name, out = out, options = options })
    seconds[i] = os.clock() - began
  end
  os.remove(out)
  local speed = bytes / 1e6 / report.quantile(seconds, 0.5)
  report.row { what = ("export -f %s, of lines, for a second of CPU"):format(what), ours = ("%.0f MB"):format(speed), value = speed,
    unit = "MB/s", must = MUST, better = "more" }
end

--- Packed ids, as a run keeps long lists, back to JSON.
local function planes(rounds)
  local list, random = {}, ab.rand.new(1)
  for i = 1, TOKENS do list[i] = random:int(1, 150000) end
  local bytes, kind = plane.pack(assert(ab.json.raw(ab.json.encode(ab.json.array(list)))))
  local seconds, size = {}, 0
  for i = 1, rounds do
    local began = os.clock()
    for _ = 1, 20 do size = #plane.unpack(bytes, kind) end
    seconds[i] = (os.clock() - began) / 20
  end
  local speed = size / 1e6 / report.quantile(seconds, 0.5)
  report.row { what = "token planes to JSON", ours = ("%.0f MB"):format(speed), value = speed, unit = "MB/s", must = MUST_PLANES,
    better = "more" }
end

return function(rounds)
  local dir = assert(fs.tmpdir "agentbox-bench-export")
  for _, kind in ipairs { "chat", "tokens" } do
    local input, bytes = made(dir, kind)
    for _, what in ipairs(FORMATS[kind]) do speed_of(what, input, bytes, dir .. "/out.jsonl", rounds) end
  end
  planes(rounds)
  assert(fs.remove(dir, true))
end

--- Exports: megabytes of a run's lines for a second of CPU, for each format, and token planes to JSON.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local plane = require "agentbox.sys.plane"
local report = require "report"

local binary = assert(fs.realpath "/proc/self/exe")
local MEGABYTES, TOKENS, MUST, MUST_PLANES = 30, 200000, 200, 100

--- Each format on the run that it is for: messages of a hosted model, or calls with token ids. Some say everything again for
--- every turn: those write several times what they read.
local FORMATS = {
  chat = {
    "canonical", "openai", "openai:tool_args=object", "sharegpt:mixed=drop_text", "prompt-completion", "preference",
    "preference:form=unpaired", "art", "art:form=exchanges", "verifiers", "verifiers:form=legacy", "jsonl", "agentbox",
  },
  tokens = {
    "trl", "verl", "skyrl", "skyrl:mode=stepwise", "prime-rl", "slime", "openrlhf", "pretokenized", "art", "art:form=exchanges",
    "verifiers", "verifiers:form=legacy", "canonical",
  },
}
local KINDS = { chat = "messages", tokens = "ids" }

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

local function speed_of(kind, what, input, bytes, dir, rounds)
  local name, settings, options, seconds, written = what:match "^([^:]+)", what, {}, {}, 0
  for key, value in settings:gmatch "([%w_]+)=([%w_]+)" do options[key] = value end
  local out = name == "agentbox" and dir .. "/documents/" or dir .. "/out.jsonl" -- its documents are files
  for i = 1, rounds do
    collectgarbage()
    local began = os.clock()
    local result = assert(ab.export.convert { input = input, format = name, out = out, options = options })
    seconds[i], written = os.clock() - began, 0
    for _, path in ipairs(result.files) do written = written + assert(fs.stat(path)).size end
    assert(fs.remove(out, true))
  end
  local speed = bytes / 1e6 / report.quantile(seconds, 0.5)
  local times = written / bytes
  report.row {
    what = ("export -f %s, of lines of %s%s, for a second of CPU"):format(what, KINDS[kind],
      times > 1.5 and (" (writes %.1f times that)"):format(times) or ""),
    ours = ("%.0f MB"):format(speed), value = speed, unit = "MB/s", must = MUST, better = "more",
  }
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
    for _, what in ipairs(FORMATS[kind]) do speed_of(kind, what, input, bytes, dir, rounds) end
  end
  planes(rounds)
  assert(fs.remove(dir, true))
end

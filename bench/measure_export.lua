--- Exports: megabytes of a run's lines for a second of CPU, for each format, and token planes to JSON. Beside each what it
--- writes, and what writing as many bytes of nothing into as many files costs, synced and named alike. Each round writes into
--- a folder of its own, and they go when a format is done: ext4 takes long to make files right after it removed many.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local parts = require "agentbox.export.parts"
local plane = require "agentbox.sys.plane"
local report = require "report"

local binary = assert(fs.realpath "/proc/self/exe")
local MEGABYTES, TOKENS, MUST, MUST_PLANES = 30, 200000, 200, 100

--- Each format on the run that it is for: messages of a hosted model, or calls with token ids.
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
--- Those that say everything again for every turn, and so write several times what they read: they are judged by what they
--- write, all others by what they read, though many of these write more than that.
local REPEATING = {
  chat = { ["art:form=exchanges"] = true, ["verifiers:form=legacy"] = true },
  tokens = { ["skyrl:mode=stepwise"] = true, art = true, ["art:form=exchanges"] = true, ["verifiers:form=legacy"] = true },
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

local CHUNK = ("x"):rep(128 * 1024)

-- Writes files of these sizes; seconds of CPU.
local function write_bare(sizes, dir)
  assert(fs.mkdir(dir))
  local began = os.clock()
  local files <close> = parts.new()
  for i, size in ipairs(sizes) do
    local file = assert(files:open(("%s/%d"):format(dir, i)))
    for at = 0, size - 1, #CHUNK do assert(file:write(size - at < #CHUNK and CHUNK:sub(1, size - at) or CHUNK)) end
  end
  assert(files:settle())
  return os.clock() - began
end

local function sizes_of(paths)
  local sizes, sum = {}, 0
  for i, path in ipairs(paths) do
    sizes[i] = assert(fs.stat(path)).size
    sum = sum + sizes[i]
  end
  return sizes, sum
end

local function megabytes(bytes, seconds) return bytes / 1e6 / report.quantile(seconds, 0.5) end

local function speed_of(kind, what, input, bytes, dir, rounds)
  local name, settings, options, seconds, bare, written = what:match "^([^:]+)", what, {}, {}, {}, 0
  for key, value in settings:gmatch "([%w_]+)=([%w_]+)" do options[key] = value end
  for i = 1, rounds do
    local place = ("%s/rounds/%d"):format(dir, i)
    assert(fs.mkdir(place, true))
    local out = place .. (name == "agentbox" and "/documents/" or "/out.jsonl") -- its documents are files
    collectgarbage()
    local began = os.clock()
    local result = assert(ab.export.convert { input = input, format = name, out = out, options = options })
    seconds[i] = os.clock() - began
    local sizes
    sizes, written = sizes_of(result.files)
    bare[i] = write_bare(sizes, place .. "/bare")
  end
  assert(fs.remove(dir .. "/rounds", true))
  local read, wrote, repeats = megabytes(bytes, seconds), megabytes(written, seconds), REPEATING[kind][what]
  report.row {
    what = ("export -f %s, of lines of %s, for a second of CPU"):format(what, KINDS[kind]),
    ours = ("%.0f MB in, %.0f out"):format(read, wrote),
    peer = ("bare write %.0f MB"):format(megabytes(written, bare)),
    value = repeats and wrote or read, unit = repeats and "MB/s out" or "MB/s in", must = MUST, better = "more",
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

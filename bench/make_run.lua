--- Makes a run folder of any size, as a night of training leaves it: token ids and log-probs of every call, the bodies
--- of requests and responses, groups of eight, every rule kept.
---
---     agentbox script bench/make_run.lua DIR RUN MEGABYTES [TURNS [SEED [chat|ids [GROUP]]]]
---
--- With `chat` the server gave no token ids and no log-probs: lines of messages, as a run against a hosted model leaves.
local json = require "agentbox.json"
local rand = require "agentbox.rand"
local record = require "agentbox.record"
local store = require "agentbox.store"

local dir, run_id, megabytes = arg[1], arg[2], tonumber(arg[3])
local turns, random = tonumber(arg[4] or 20), rand.new(tonumber(arg[5] or 1))
local chat = arg[6] == "chat"
local TOOLS = json.array { json.decode [[{"type":"function","function":{"name":"sh","description":"Runs a command.",
  "parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}}}]] }
local OUT_TOKENS, GROUP = 120, tonumber(arg[7] or 8)

local POOL = {}
for i = 1, 4000 do
  POOL[i] = ("%s %s = %s(%d)\n"):format("    return", ("x"):rep(random:int(1, 12)), "compute", random:int(1, 99999))
end
POOL = table.concat(POOL)

local function text(bytes)
  local at = random:int(1, #POOL - bytes)
  return POOL:sub(at, at + bytes - 1)
end

local function raw(list) return assert(json.raw("[" .. list .. "]")) end

-- A stock of answers (ids, log-probs, and the server's list of objects) and of what stands between them: made once, for
-- numbers are slow to print.
local function answer()
  local ids, lps, content = {}, {}, {}
  for i = 1, OUT_TOKENS do
    ids[i], lps[i] = tostring(random:int(1, 150000)), ("%.9g"):format(-random:float() * 3 - 1e-6)
    content[i] = ('{"token":"token_id:%s","logprob":%s,"bytes":null,"top_logprobs":[]}'):format(ids[i], lps[i])
  end
  return { ids = table.concat(ids, ","), lps = table.concat(lps, ","), content = table.concat(content, ",") }
end

local function numbers(n)
  local list = {}
  for i = 1, n do list[i] = tostring(random:int(1, 150000)) end
  return { text = table.concat(list, ","), n = n }
end

local ANSWERS, GAPS = {}, {}
for i = 1, 500 do ANSWERS[i], GAPS[i] = answer(), numbers(random:int(60, 1000)) end

local Episode = {}
Episode.__index = Episode

function Episode:say(message, origin, call)
  self.leaf = self.rec:message(message, { origin = origin, call = call })
  self.sent[#self.sent + 1] = json.encode(message)
end

function Episode:turn(n, last)
  local message = { role = "assistant", content = text(200) }
  if not last then
    message.tool_calls = { { id = "c" .. n, type = "function", ["function"] = { name = "sh", arguments = json.encode { cmd = text(60) } } } }
  end
  local given = ANSWERS[random:int(1, #ANSWERS)]
  local id = ("chatcmpl-%s-%d"):format(self.id, n)
  local request = ('{"model":"policy@7","messages":[%s],"tools":%s,"temperature":1.0}')
    :format(table.concat(self.sent, ","), json.encode(TOOLS))
  local response = ('{"id":"%s","choices":[{"index":0,"message":%s,"finish_reason":"stop","logprobs":%s}]}')
    :format(id, json.encode(message), chat and "null" or '{"content":[' .. given.content .. "]}")
  self.at = self.at + 2.5
  local call = self.rec:call {
    leaf = self.leaf, request = { session = self.id, sampling = { temperature = 1.0, max_tokens = 512 } },
    response = {
      message = message, finish = { raw = last and "stop" or "tool_calls", norm = last and "stop" or "tool_calls" },
      usage = { prompt = self.count, completion = OUT_TOKENS, total = self.count + OUT_TOKENS, cached = 0 },
      tokens = not chat and { src = "engine", prompt = raw(self.ids), out = raw(given.ids), lp = raw(given.lps) } or nil,
      raw_request = request,
      raw_response = response, response_id = id, served_model = "policy@7", tries = 1,
      times = { queued = self.at, first = self.at + 0.4, done = self.at + 2 },
    },
  }
  self:say(message, "sampled", call)
  if last then return end
  self:say({ role = "tool", tool_call_id = "c" .. n, content = text(random:int(200, 4000)) }, "tool")
  self.rec:tool_run { node = self.leaf, slot = 0, call_id = "c" .. n, name = "sh", t = { self.at + 2, self.at + 2.1 }, exit = 0 }
  local gap = GAPS[random:int(1, #GAPS)]
  self.ids = self.ids .. "," .. given.ids .. "," .. gap.text
  self.count = self.count + OUT_TOKENS + gap.n
end

local function episode(n)
  local group, index = n // GROUP, n % GROUP
  local first = numbers(300)
  local self = setmetatable({
    id = ("g%d-%d"):format(group, index), sent = {}, ids = first.text, count = first.n, at = 1764444000.0 + n,
  }, Episode)
  self.rec = record.new {
    run_id = run_id, id = self.id, group = { id = "g" .. group, index = index, size = GROUP },
    task = { task_id = "t-" .. group % 97, description = "Make the tests pass.", hash = "sha256:" .. ("5f"):rep(32) },
    agent = { name = "tool_loop" }, model = { name = "policy@7", kind = "openai" }, tools = TOOLS, tool_mode = "openai",
    seed = n, started = self.at,
  }
  self:say({ role = "system", content = "You fix programs." }, "prompt")
  self:say({ role = "user", content = text(800) }, "prompt")
  for turn = 1, turns do self:turn(turn, turn == turns) end
  local solved = random:float() < 0.4
  return self.rec:finish {
    status = "completed", final_status = solved and "success" or "failed", stop = { reason = "final_answer" },
    reward = { scored = true, value = solved and 1.0 or 0.0, outcome = solved and 1.0 or 0.0, scorer = { name = "pytest" } },
    verify = { success = solved, exit_code = solved and 0 or 1, stdout = text(300), stderr = "", duration_s = 0.5, command = "pytest -q" },
    timing = { queued_ms = 5, boot_ms = 9, seed_ms = 3, model_ms = 2000 * turns, tool_ms = 100 * turns, score_ms = 500,
               total_ms = 2200 * turns },
    sandbox = { kind = "native", id = "sb-" .. n },
  }
end

local s <close> = assert(store.open(dir, { run_id = run_id, agentbox_json = false, meta = { made_by = "bench/make_run.lua" } }))
local bytes, n, members, rewards, places = 0, 0, {}, {}, {}
while bytes < megabytes * 1e6 or n % GROUP ~= 0 do
  local t = episode(n)
  local stored = assert(s:append(t))
  members[#members + 1], rewards[#rewards + 1] = t.id, t.reward
  places[#places + 1] = { segment = stored.segment, offset = stored.offset }
  if #members == GROUP then
    local id = "g" .. n // GROUP
    assert(s:group {
      id = id, of = id, from = 0, task_id = "t-" .. n // GROUP % 97, size = GROUP, members = members, rewards = rewards,
      outcomes = rewards, places = places, partial = false, zero_signal = false,
      waste = { rollouts = 0, steps = 0, tokens = 0, seconds = 0 },
    })
    members, rewards, places = {}, {}, {}
  end
  n, bytes = n + 1, stored.segment * store.SEGMENT_BYTES + stored.offset
end
print(("%d rollouts, %.0f MB in %s"):format(n, bytes / 1e6, s.run_dir))

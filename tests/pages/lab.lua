--- Makes the run folders that the pages are tested and photographed with.
---
---     agentbox script tests/pages/lab.lua DIR RUN run|hostile|many
---
--- `run`: two models, ten tasks, four attempts of each; every way to end, reasoning, edits, drift, tampering, a branch,
--- attempts made again, checks that passed where the verifier failed. `hostile`: texts that try to become something else.
--- `many`: 10,000 small ones, as lines of a file.
local frame = require "agentbox.store.frame"
local json = require "agentbox.json"
local rand = require "agentbox.rand"
local record = require "agentbox.record"
local store = require "agentbox.store"

local dir, run_id, kind = arg[1], arg[2], arg[3]
local random = rand.new(11)
local TOOLS = json.array {}
for i, name in ipairs { "read_file", "write_file", "edit_file", "run_command", "run_tests" } do
  TOOLS[i] = json.decode(([[{"type":"function","function":{"name":"%s","description":"...","parameters":{"type":"object"}}}]]):format(name))
end

local Episode = {}
Episode.__index = Episode

local function episode(opts)
  local self = setmetatable({ at = opts.started + 0.4, ids = {}, sent = {}, n = 0, opts = opts, drift_at = opts.drift_at }, Episode)
  self.rec = record.new {
    run_id = run_id, id = opts.id, attempt = opts.attempt or 0, group = opts.group,
    task = { task_id = opts.task, description = opts.description, hash = "sha256:" .. ("5f"):rep(32), metadata = { difficulty = "easy" } },
    agent = { name = "tool_loop" }, model = { name = opts.model, kind = "openai" }, tools = TOOLS, tool_mode = "openai", seed = 7,
    started = opts.started,
  }
  return self
end

function Episode:say(message, origin, call)
  self.leaf = self.rec:message(message, { origin = origin, call = call })
  self.sent[#self.sent + 1] = json.encode(message)
  return self.leaf
end

local function numbers(n)
  local list = {}
  for i = 1, n do list[i] = random:int(1, 150000) end
  return list
end

-- The ids of the prompt: those before and what is new, unless this call is to drift.
function Episode:prompt()
  if self.drift_at == self.n then self.ids[#self.ids - 2] = 7 end
  for _, id in ipairs(numbers(random:int(40, 260))) do self.ids[#self.ids + 1] = id end
  return json.array(table.move(self.ids, 1, #self.ids, 1, {}))
end

function Episode:ask(message)
  self.n = self.n + 1
  local prompt, out, lp = self:prompt(), json.array(numbers(random:int(30, 180))), json.array {}
  for i = 1, #out do lp[i] = -random:float() * 2 end
  local think, id = 0.8 + random:float() * 3, ("chatcmpl-%s-%d"):format(self.opts.id, self.n)
  local call = self.rec:call {
    leaf = self.leaf, request = { session = self.opts.id, sampling = { temperature = 1.0, max_tokens = 2048 } },
    response = {
      message = message, finish = { raw = message.tool_calls and "tool_calls" or "stop", norm = message.tool_calls and "tool_calls" or "stop" },
      usage = { prompt = #prompt, completion = #out, total = #prompt + #out, cached = #prompt // 2 },
      tokens = { src = "engine", prompt = json.raw(json.encode(prompt)), out = json.raw(json.encode(out)), lp = json.raw(json.encode(lp)) },
      raw_request = ('{"model":%s,"messages":[%s],"tools":%s,"temperature":1.0}'):format(json.encode(self.opts.model),
        table.concat(self.sent, ","), json.encode(TOOLS)),
      raw_response = ('{"id":"%s","choices":[{"index":0,"message":%s}]}'):format(id, json.encode(message)), response_id = id,
      served_model = self.opts.model, tries = self.n == 2 and 2 or 1,
      times = { queued = self.at, first = self.at + think * 0.3, done = self.at + think },
    },
  }
  self.at = self.at + think
  for _, token in ipairs(out) do self.ids[#self.ids + 1] = token end
  self:say(message, "sampled", call)
end

-- A turn with tool calls, each with its result.
function Episode:turn(text, reasoning, calls)
  local message = { role = "assistant", content = text, reasoning_content = reasoning, tool_calls = json.array {} }
  for i, call in ipairs(calls) do
    local arguments = type(call[2]) == "string" and call[2] or json.encode(json.object(call[2]))
    message.tool_calls[i] = { id = ("c%d_%d"):format(self.n + 1, i), type = "function", ["function"] = { name = call[1], arguments = arguments } }
  end
  self:ask(message)
  for i, call in ipairs(calls) do
    self:say({ role = "tool", tool_call_id = message.tool_calls[i].id, content = call[3] }, "tool")
    local took = call.took or 0.05 + random:float() * 0.6
    self.rec:tool_run { node = self.leaf, slot = i - 1, call_id = message.tool_calls[i].id, name = call[1], t = { self.at, self.at + took },
      exit = call.exit, is_error = call.is_error, cut = call.cut }
    self.at = self.at + took
  end
end

function Episode:finish(result)
  local total = (self.at - self.opts.started + 0.9) * 1000
  result.timing = { queued_ms = 20, boot_ms = 14, seed_ms = 210, model_ms = total * 0.72, tool_ms = total * 0.14, score_ms = 700, total_ms = total }
  result.sandbox = { kind = "native", id = "sb-1", image = "python:3.12-slim", network = { mode = "none" } }
  return self.rec:finish(result)
end

local TASKS = {
  { "csv-totals", "Make `report.py` print the sum of every numeric column of `sales.csv`, one per line, as `name: total`." },
  { "fix-slugify", "`slugify` in `text.py` loses accented letters. Fix it; the tests in `tests/` tell what is expected." },
  { "lru-cache", "Write an LRU cache in `cache.py` with `get` and `put`, both O(1)." },
  { "merge-intervals", "Implement `merge(intervals)` in `intervals.py`." },
  { "rate-limiter", "A token bucket in `limiter.py`; the clock is injected." },
  { "json-patch", "Apply RFC 6902 patches in `patch.py`. Paths that are not there raise `KeyError`." },
  { "topo-sort", "Sort the build graph in `graph.py`; report a cycle by its members." },
  { "date-ranges", "`ranges.py` splits a span of dates at month ends. Leap years are wrong." },
  { "markdown-toc", "Make a table of contents from the headings of a Markdown file." },
  { "trie-search", "Prefix search over a word list in `trie.py`." },
}

local PASS = "exit_code=0\nstdout:\n\27[32m.....\27[0m                                     [100%]\n\27[32m\27[1m5 passed\27[0m\27[32m in 0.04s\27[0m\n"
local FAIL = "exit_code=1\nstdout:\n\27[31m..F..\27[0m                                     [100%]\n=================== FAILURES ===================\n"
    .. "____________________ test_empty ____________________\n\n    def test_empty():\n>       assert merge([]) == []\n"
    .. "\27[1m\27[31mE       TypeError: 'NoneType' object is not iterable\27[0m\n\ntests/test_merge.py:14: TypeError\n\27[31m1 failed, 4 passed in 0.06s\27[0m\n"
local BEFORE = "def merge(intervals):\n    intervals.sort()\n    out = []\n    for start, end in intervals:\n        out.append((start, end))\n    return out or None\n"
local AFTER = "def merge(intervals):\n    out = []\n    for start, end in sorted(intervals):\n        if out and start <= out[-1][1]:\n"
    .. "            out[-1] = (out[-1][0], max(out[-1][1], end))\n        else:\n            out.append((start, end))\n    return out\n"

local function opening(e, task)
  e:say({ role = "system", content = "You fix programs in a sandbox. Work step by step and run the tests before you finish." }, "prompt")
  e:say({ role = "user", content = task[2] }, "prompt")
end

local function work(e, solved)
  e:turn("I'll look at what is there first.", "The task names one file. Before changing anything I want to see it and the tests beside it, so that I know which behaviour is already covered.",
    { { "read_file", { path = "intervals.py" }, BEFORE }, { "run_command", { command = "ls -la && git log --oneline | head" }, "exit_code=0\nstdout:\ntotal 16\n-rw-r--r-- 1 agent agent  178 intervals.py\ndrwxr-xr-x 2 agent agent 4096 tests\n", exit = 0 } })
  e:turn("A first version.", nil, { { "write_file", { path = "intervals.py", content = BEFORE }, "Wrote 178 chars to intervals.py" }, { "run_tests", { command = "python -m pytest -q" }, FAIL, exit = 1, took = 1.4 } })
  e:turn("`return out or None` turns an empty list into `None`, and overlapping intervals are never joined.", "Two bugs. The empty case is the one that fails the test, but the loop also never merges anything; fixing only the first would be a patch over the symptom.",
    { { "edit_file", { path = "intervals.py", old_string = BEFORE, new_string = AFTER }, "Edited intervals.py" } })
  e:turn(nil, nil, { { "run_tests", { command = "python -m pytest -q" }, solved and PASS or FAIL, exit = solved and 0 or 1, took = 1.2 } })
end

local function verdict(success, stdout)
  return { success = success, exit_code = success and 0 or 1, stdout = stdout or (success and PASS or FAIL), stderr = "", duration_s = 0.7, command = "python -m pytest -q /verify/tests" }
end

local function scored(value) return { scored = true, value = value, outcome = value, scorer = { name = "pytest" } } end

local ends = {}

function ends.success(e)
  work(e, true)
  e:ask { role = "assistant", content = "Fixed: overlapping intervals are joined, and an empty list stays a list. All five tests pass." }
  return { status = "completed", final_status = "success", stop = { reason = "final_answer" }, reward = scored(1.0), verify = verdict(true) }
end

function ends.failed(e)
  work(e, false)
  e:ask { role = "assistant", content = "I believe the remaining failure comes from the test itself." }
  return { status = "completed", final_status = "failed", stop = { reason = "final_answer" }, reward = scored(0.0), verify = verdict(false) }
end

function ends.partial(e)
  work(e, false)
  e:ask { role = "assistant", content = "Four of five tests pass." }
  return { status = "completed", final_status = "failed", stop = { reason = "final_answer" }, verify = verdict(false),
    reward = { scored = true, value = 0.8, outcome = 0.8, components = { tests = 0.8 }, scorer = { name = "pytest" } } }
end

function ends.mismatch(e)
  work(e, true)
  e:ask { role = "assistant", content = "All tests pass." }
  return { status = "completed", final_status = "failed", stop = { reason = "final_answer" }, reward = scored(0.0), verify = verdict(false),
    tamper = { changed = json.array {}, removed = json.array {}, planted = json.array(e.opts.tamper and { "tests/conftest.py" } or {}), suspicious = e.opts.tamper == true } }
end

function ends.max_steps(e)
  for _ = 1, 3 do work(e, false) end
  return { status = "truncated", final_status = "max_steps", stop = { reason = "max_turns", class = "policy" }, reward = scored(0.0), verify = verdict(false) }
end

function ends.timeout(e)
  work(e, false)
  e:turn("One more try.", nil, { { "run_command", { command = "python -m pytest -q --count 100000", timeout_s = 60 }, "exit_code=124\nThe command was killed after 60 s.", exit = 124, took = 60 } })
  return { status = "truncated", final_status = "timeout", stop = { reason = "wall_timeout", class = "policy" }, reward = scored(0.0), verify = verdict(false) }
end

function ends.error(e)
  e:turn("I'll look at what is there first.", nil, { { "read_file", { path = "intervals.py" }, BEFORE } })
  e.rec:call { leaf = e.leaf, error = { code = "model", msg = "the server answered 503 to 4 tries", http_status = 503, tries = 4, body = '{"error":"overloaded"}', times = { queued = e.at, done = e.at + 6 } } }
  e.rec:event("error", "the server answered 503 to 4 tries")
  e.at = e.at + 6
  return { status = "failed", final_status = "error", stop = { reason = "model_error", class = "model_server", detail = "503" }, reward = { scored = false }, error = "model: the server answered 503 to 4 tries" }
end

local MODELS = { { "coder-14b@3", 0.72 }, { "coder-3b@3", 0.38 } }

local function choose(skill, task, n)
  local hard = task * 0.07
  if n == 3 and task == 6 then return "error" end
  if random:float() < skill + 0.3 - hard then return "success" end
  return ({ "failed", "partial", "mismatch", "max_steps", "timeout", "failed" })[random:int(1, 6)]
end

local function add(s, opts, name, description)
  local e = episode(opts)
  opening(e, { opts.task, description })
  assert(s:append(e:finish(ends[name](e))))
end

local function fill_run(s)
  local n = 0
  for _, model in ipairs(MODELS) do
    for task, about in ipairs(TASKS) do
      for index = 0, 3 do
        n = n + 1
        local id = ("%s-%s-%d"):format(model[1]:match "%d+b", about[1], index)
        local opts = { id = id, task = about[1], description = about[2], model = model[1], started = 1790000000.0 + n * 3.1,
          group = { id = model[1] .. "/" .. about[1], index = index, size = 4 }, drift_at = n % 7 == 0 and 3 or nil, tamper = n % 2 == 0 }
        local name = choose(model[2], task, index)
        if name == "error" and model[2] > 0.5 then
          opts.id = id .. "-first"
          add(s, opts, "error", about[2])
          opts.id, opts.attempt, name = id, 1, "success"
        end
        add(s, opts, name, about[2])
      end
    end
  end
end

local HOSTILE = {
  script = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
  comment = "<!-- <script> --><svg onload=alert(1)>{{data}} ]]> <a href=\"javascript:alert(1)\">x</a>",
  ansi = "\27[31mred\27[0m \27[2J\27]0;owned\7\27]8;;http://example.org\27\\link\27]8;;\27\\ \27[38;5;196mdeep\27[0m bell\7 back\8\8",
  bidi = "access = \"user\u{202e} \u{2066}// admin\u{2069} \u{2066}\" \u{200b}zero\u{feff}width\u{061c} e\u{301}\u{301}\u{301}\u{301}",
  latex = [["><img src=x onerror=alert(1)> $\\href{x"><animate onbegin=alert(1)>}{z}$ [x](javascript:alert(1)) data:text/html,<script>1</script>]],
  proto = '{"__proto__":{"polluted":1},"constructor":{"prototype":1}}',
}

local function fill_hostile(s)
  local i = 0
  for name, text in pairs(HOSTILE) do
    i = i + 1
    local e = episode { id = "bad-" .. name, task = name .. " " .. text, description = text, model = text, started = 1790000000.0 + i, group = nil }
    e:say({ role = "system", content = text }, "prompt")
    e:say({ role = "user", content = text }, "prompt")
    e:turn(text, text, { { text, { [text] = text, path = text, content = text }, text, exit = 0 }, { "write_file", HOSTILE.proto, text, is_error = true } })
    e.rec:event("error", text)
    e.rec:note("note", text)
    assert(s:append(e:finish { status = "failed", final_status = "error", stop = { reason = "tool_error", class = "engine", detail = text }, error = text,
      reward = { scored = false }, metadata = { [text] = text }, verify = { success = false, exit_code = 1, stdout = text, stderr = text, command = text } }))
  end
  local e = episode { id = "long-line", task = "long", description = "a line of 5 MB", model = "m", started = 1790000100.0 }
  e:say({ role = "user", content = "go" }, "prompt")
  e:turn("x", nil, { { "run_command", { command = ("y"):rep(5 << 20) }, ("<\u{202e}é"):rep(900000), exit = 0 } })
  e:turn("bytes", nil, { { "run_command", { command = "cat" }, "\xff\xfe\xc3( \xed\xa0\x80 \xf0\x9f\x98 \0\1\2", exit = 0 } })
  assert(s:append(e:finish { status = "completed", final_status = "failed", stop = { reason = "final_answer" }, reward = scored(0.0), verify = verdict(false, ("z"):rep(5 << 20)) }))
end

-- Lines without a store: ten thousand syncs are not what is tested.
local function write_many(path)
  local file <close> = assert(io.open(path, "wb"))
  for i = 1, 10000 do
    local at = 1790000000.0 + i * 0.7
    local rec = record.new { run_id = run_id, id = ("r-%05d"):format(i), task = { task_id = ("task-%03d"):format(i % 250) }, agent = { name = "tool_loop" },
      model = { name = "m@" .. i // 1000 }, started = at }
    rec:message({ role = "user", content = "go " .. i }, { origin = "prompt" })
    local solved = random:float() < 0.5
    local t = rec:finish { status = "completed", final_status = solved and "success" or "failed", stop = { reason = "final_answer" },
      reward = scored(solved and 1.0 or random:int(0, 9) / 10), timing = { total_ms = random:int(500, 90000), model_ms = 400 },
      metrics = { steps = random:int(1, 40) } }
    assert(file:write(frame.close(json.encode(t.line))))
  end
end

if kind == "many" then return write_many(("%s/%s.jsonl"):format(dir, run_id)) end
local s <close> = assert(store.open(dir, { run_id = run_id, agentbox_json = false }))
if kind == "hostile" then fill_hostile(s) else fill_run(s) end

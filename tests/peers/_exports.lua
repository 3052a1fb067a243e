-- Usage: agentbox script _exports.lua [chats] FOLDER FORMAT[:NAME=VALUE[,...]]... Makes a run of rollouts with token ids (unbroken ones,
-- ones that drift and fork, one that failed) in FOLDER/run and its exports in FOLDER/FORMAT.jsonl (or FORMAT-VALUE.jsonl); the
-- records themselves, with their lists in full, in FOLDER/calls.jsonl. With `chats` the rollouts have no ids, but turns of all kinds:
-- one call, several, text beside a call, none, and texts that are hard to keep.
local ab = require "agentbox"
local here = arg[0]:match "^(.*)/[^/]*$" or "."
local made = dofile(here .. "/../support/rollouts.lua")

local with_chats = arg[1] == "chats"
if with_chats then table.remove(arg, 1) end
local out = arg[1]
local SIZE, GROUPS = 4, 12

local CHATS = {
  { { calls = { "ls" } }, { text = "Done." } },
  { { calls = { "ls -l", "cat \"a b\" | wc -c" } }, { calls = { "true" } }, { text = "Two at once, then one." } },
  { { text = "Let me look.", calls = { "ls" } }, { text = "Seen." } },
  { { text = "Nothing to do: \u{2603} \u{1F600} \u{2028} \"quotes\" \\ {} <tool_call> \n\n  " } },
  { { calls = { "printf '\\n\u{e9}{\"a\":1}'" }, output = "{\"name\":\"sh\"}\n\u{1F600}" }, { text = "Odd bytes." } },
}

local function chat(store, i, turns)
  local ro = made.new { id = "chat/" .. i, run_id = "r", task_id = "t" .. i, user = "Task " .. i .. "." }
  for at, turn in ipairs(turns) do
    local calls = ab.json.array {}
    for j, command in ipairs(turn.calls or {}) do calls[j] = made.tool_call(("c%d-%d"):format(at, j), command) end
    ro:reply(made.object("role", "assistant", "content", turn.text or ab.json.null, "tool_calls", turn.calls and calls),
      { norm = turn.calls and "tool_calls" or "stop" })
    local results = {}
    for j = 1, #calls do results[j] = { text = (turn.output or "ok ") .. j } end
    ro:tools(calls, results)
  end
  assert(store:append(ro:finish()))
end

local function group(store, random, g)
  for index = 0, SIZE - 1 do
    local opts = { id = ("g%d/%d"):format(g, index), run_id = "r", task_id = "t" .. g, model = "fixer@" .. 10 + g,
      group = { id = "g" .. g, index = index, size = SIZE } }
    local result = { reward = { scored = true, value = index / SIZE, outcome = index / SIZE, components = { tests = index / SIZE } },
      final_status = index == SIZE - 1 and "success" or "failed" }
    if g == 1 and index == 0 then
      result = { status = "failed", final_status = "error", stop = { reason = "sandbox_error", class = "sandbox", detail = "gone" },
        reward = { scored = false } }
    end
    assert(store:append(made.of_calls(made.random_calls(random), opts, result)))
  end
end

do
  local store <close> = assert(ab.store.open(out .. "/run", { run_id = "r" }))
  local random = ab.rand.new(7)
  if with_chats then
    for i, turns in ipairs(CHATS) do chat(store, i, turns) end
  else
    for g = 1, GROUPS do group(store, random, g) end
  end
end

local function value_of(text)
  if text == "true" or text == "false" then return text == "true" end
  return tonumber(text) or text
end

for i = 2, #arg do
  local format, settings = arg[i]:match "^([^:]+):?(.*)$"
  local options, name = {}, format
  for key, value in settings:gmatch "([%w_]+)=([^,]+)" do
    options[key], name = value_of(value), name .. "-" .. value
  end
  assert(ab.export.convert { input = out .. "/run", format = format, out = ("%s/%s.jsonl"):format(out, name), options = options })
end

if with_chats then return 0 end

local calls = assert(io.open(out .. "/calls.jsonl", "w"))
for t in ab.traj.each(out .. "/run") do
  local list = ab.json.array {}
  for call in t:calls { trainable = true } do
    list[#list + 1] = { prompt = call.tokens.prompt, out = call.tokens.out, lp = call.tokens.lp }
  end
  calls:write(ab.json.encode { id = t.id, scored = t.scored, reward = t.reward, calls = list }, "\n")
end
calls:close()
return 0

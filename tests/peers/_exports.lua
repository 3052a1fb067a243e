-- Usage: agentbox script _exports.lua FOLDER FORMAT[:NAME=VALUE[,...]]... Makes a run of rollouts with token ids (unbroken ones, ones
-- that drift and fork, one that failed) in FOLDER/run and its exports in FOLDER/FORMAT.jsonl (or FORMAT-VALUE.jsonl); the records
-- themselves, with their lists in full, in FOLDER/calls.jsonl.
local ab = require "agentbox"
local here = arg[0]:match "^(.*)/[^/]*$" or "."
local made = dofile(here .. "/../support/rollouts.lua")

local out = arg[1]
local SIZE, GROUPS = 4, 12

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
  for g = 1, GROUPS do group(store, random, g) end
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

--- Makes what openpipe_art.py judges: a run with two real rollouts of a group (one solves the task, one does not) and a
--- sandbox that cannot be had, hand-made rollouts with token ids, and the exports of them all.
local ab = require "agentbox"
local here = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = ("%s/../../examples/?.lua;%s"):format(here, package.path)
local solver = require "solver"
local made = dofile(here .. "/../support/rollouts.lua")

local out = arg[1]
local task = assert(ab.task.load(here .. "/../../tasks/fix_fizzbuzz"))

local function real(store)
  for i, broken in ipairs { false, true } do
    local t = assert(ab.rollout.run {
      task = task, model = solver.model(task, broken), run_id = "real", id = "g-" .. i - 1,
      group = { id = "g", index = i - 1, size = 3 },
    })
    assert(t.scored, t.error)
    assert(store:append(t))
  end
  local lost = assert(ab.rollout.run {
    task = task, model = solver.model(task), run_id = "real", id = "g-2", group = { id = "g", index = 2, size = 3 },
    sandbox = { image = "/no/such/image" },
  })
  assert(not lost.scored)
  assert(store:append(lost))
end

local function hand_made(store)
  assert(store:append(made.sample({ id = "h-0", run_id = "made" }, { tokens = true }):finish()))
  assert(store:append(made.sample({ id = "h-1", run_id = "made" }, { tokens = true, answer = "\u{2028}\u{1F600} \0 \n\n  " }):finish()))
  assert(store:append(made.sample({ id = "h-2", run_id = "made", task_id = "t-18" }, { bare = true, usage = false }):finish()))
end

local function run(name, fill)
  local dir = ("%s/%s"):format(out, name)
  do
    local store <close> = assert(ab.store.open(dir, { run_id = name }))
    fill(store)
  end
  for _, form in ipairs { "messages", "exchanges" } do
    assert(ab.export.convert {
      input = dir, format = "art", out = ("%s/%s-%s.jsonl"):format(out, name, form), options = { form = form },
    })
  end
  local responses = assert(io.open(("%s/%s-responses.jsonl"):format(out, name), "w"))
  for t in ab.traj.each(dir) do
    for call in t:calls() do
      local body = t:body(call, "response")
      if body then responses:write(ab.json.encode(ab.json.decode(body)), "\n") end
    end
  end
  responses:close()
end

run("real", real)
run("made", hand_made)
assert(ab.export.convert { input = out .. "/real/real#g-0", format = "art", out = out .. "/one.json" })
return 0

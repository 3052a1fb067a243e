--- Writes documents for agentbox_rl.py (`write DIR`), and reads what it wrote (`read DIR`).
local ab = require "agentbox"
local here = arg[0]:match "^(.*)/[^/]*$" or "."
local made = dofile(here .. "/../support/rollouts.lua")
local mode, dir = arg[1], arg[2]

local function write()
  local store <close> = assert(ab.store.open(dir .. "/ours", { run_id = "run" }))
  local odd = "\u{2028}\u{1F600} \0 \"\\\n\n  "
  for i, t in ipairs {
    made.sample({ id = "a" }, { tokens = true }):finish(),
    made.sample({ id = "b", task_id = "odd", user = odd }, { output = odd, answer = odd }):finish(),
    made.sample({ id = "c", task_id = "free" }, { usage = false }):finish { reward = { scored = true, value = -1e-07 }, final_status = "max_steps" },
    made.new({ id = "d", task_id = "short" }):finish { reward = { scored = true, value = 0.0 }, final_status = "timeout", error = "step timed out" },
  } do
    assert(store:append(t), i)
  end
end

-- Each of its files, and its line file, must come back as the document that it loaded from us.
local function read()
  local n, failed = 0, 0
  local function same(path, t)
    local ours = assert(ab.json.decode(assert(ab.fs.read(path))))
    local again = assert(ab.json.decode(assert((require "agentbox.formats.agentbox".text(t)))))
    n = n + 1
    if ab.json.encode(ours, { sorted = true }) ~= ab.json.encode(again, { sorted = true }) then
      failed = failed + 1
      print("not ok - " .. path)
    end
  end
  for _, entry in ipairs(assert(ab.fs.list(dir .. "/theirs"))) do
    local path = dir .. "/theirs/" .. entry.name
    same(path:gsub("/theirs/", "/ours/"), assert(ab.traj.load(path)))
  end
  for t in ab.traj.each(dir .. "/theirs.jsonl") do
    same(("%s/ours/%s_5f0c1a2b.json"):format(dir, t.task_id), t)
  end
  print(("%d passed, %d failed"):format(n - failed, failed))
  return failed == 0 and n == 8 and 0 or 1
end

if mode == "write" then return write() or 0 end
return read()

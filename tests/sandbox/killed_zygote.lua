--- Kills the zygote while sandboxes are made, and says whether all who wait for one were told. For ends_test.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local mine = tostring(require("agentbox.sys.os").pid())

local function kill_zygote()
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local stat = entry.name:find "^%d+$" and fs.read("/proc/" .. entry.name .. "/stat", 4096)
    local comm, parent = (stat or ""):match "^%d+ %((.*)%) %a (%d+)"
    if parent == mine and comm == "agentbox-zygote" then os.execute("kill -9 " .. entry.name .. " 2>/dev/null") end
  end
end

math.randomseed(7)
for round = 1, 30 do
  local made = {}
  for i = 1, 8 do made[i] = ab.async.spawn(ab.sandbox.create, {}) end
  for _ = 1, math.random(0, 300) do ab.async.yield() end
  ab.async.sleep(math.random() * 0.03)
  kill_zygote()
  for i = 1, 8 do
    local ok, sb = made[i]:join(20)
    if ok == nil then
      print(("round %d: sandbox %d is waited for"):format(round, i))
      os.exit(1)
    end
    if sb then sb:close() end
  end
end
print "each was told"

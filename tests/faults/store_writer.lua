--- The child of store_test.lua: writes rollouts into a store until it has written N or is killed, and prints the id of
--- each one that is on the disk. `agentbox script store_writer.lua SUPPORT DIR RUN N`.
local made = dofile(arg[1] .. "/rollouts.lua")
local store = require "agentbox.store"

local s, err = store.open(arg[2], { run_id = arg[3] })
if not s then
  io.stderr:write(tostring(err), "\n")
  return 1
end
for n = 1, tonumber(arg[4]) do
  local ro = made.new { id = ("%s-%d"):format(arg[3], n), run_id = arg[3] }
  ro:reply(made.object("role", "assistant", "content", ("x"):rep(n * 997 % 50000)),
    { raw_response = n % 3 == 0 and "a body that is\nno line of JSON " .. n or nil })
  local ok, problem = s:append(ro:finish())
  if not ok then
    io.stderr:write(tostring(problem), "\n")
    return 1
  end
  io.stdout:write(ro.id, "\n")
  io.stdout:flush()
end
s:close()
return 0

--- The socket of a command that is over is kept for the next one: never with anything in it that was meant for the first.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"

local M = {}

local sb

function M.setUp()
  sb = assert(ab.sandbox.create {})
end

function M.tearDown()
  sb:close()
end

local function sockets()
  local list = {}
  for _, entry in ipairs(assert(fs.list "/proc/self/fd")) do
    local target = fs.readlink("/proc/self/fd/" .. entry.name) or ""
    if target:find "^socket:" then list[#list + 1] = target end
  end
  table.sort(list)
  return table.concat(list, " "), #list
end

local function says(text)
  local out = assert(sb:exec({ "echo", text }, { timeout_s = 60 }))
  lu.assertEquals(out.stdout, text .. "\n")
  lu.assertEquals({ out.exit_code, out.timed_out }, { 0, false })
end

function M.test_commands_one_after_another_share_one()
  local _, before = sockets()
  says "1"
  local kept, count = sockets()
  lu.assertEquals(count, before + 1)
  for i = 2, 5 do says(tostring(i)) end
  lu.assertEquals(sockets(), kept)
  sb:close()
  local _, after = sockets()
  lu.assertEquals(after, before - 1, "that of the sandbox, and the kept one")
end

-- The time is over when the command is, more or less: what is sent to kill it may come too late.
function M.test_who_is_killed_late_takes_nobody_along()
  for i = 1, 150 do
    local out = assert(sb:exec({ "true" }, { timeout_s = 0.001 * (i % 4 + 1) }))
    lu.assertEquals(out.exit_code, out.timed_out and -1 or 0)
    says(tostring(i))
  end
end

-- A pid 1 that has no turn for a while finds the command and its end at once.
function M.test_who_is_killed_before_its_start_was_seen_is_killed()
  says "first"
  local pid1 = sb._raw:pid()
  for _, how in ipairs { "kill", "close" } do
    assert(os.execute("kill -STOP " .. pid1))
    local process = assert(sb:spawn "exec sleep 3000")
    process[how](process)
    assert(os.execute("kill -CONT " .. pid1))
    if how == "kill" then lu.assertEquals(assert(process:wait(60)).signal, "SIGKILL") end
    process:close()
    says(how)
  end
  -- Closing does not wait for it.
  lu.assertFalse(assert(sb:exec("while pgrep sleep; do :; done", { timeout_s = 60 })).timed_out)
end

-- Of two that end at once one socket is kept and the other closed: with KILL unread, what is in it must arrive all the same.
function M.test_who_is_killed_at_its_end_tells_it()
  says "first"
  local pid1 = sb._raw:pid()
  local waiting = {}
  for i = 1, 3 do waiting[i] = assert(sb:spawn "echo in; read -r line; exit 3") end
  for _, process in ipairs(waiting) do lu.assertEquals(process:read(), "in\n") end
  assert(os.execute("kill -STOP " .. pid1))
  for _, process in ipairs(waiting) do assert(process:write "go\n") end
  local ended = ("until [ $(grep -ls '^State:.Z' $(sed 's#[0-9][0-9]*#/proc/&/status#g' /proc/%d/task/%d/children) | wc -l) = 3 ]; do :; done")
    :format(pid1, pid1)
  local there = os.execute("timeout 60 sh -c \"" .. ended:gsub('[$"]', "\\%0") .. '"')
  for _, process in ipairs(waiting) do process:kill() end
  assert(os.execute("kill -CONT " .. pid1))
  lu.assertTrue(there)
  for _, process in ipairs(waiting) do lu.assertEquals(assert(process:wait(60)).exit_code, 3) end
  says "last"
end

function M.test_many_that_end_together()
  for round = 1, 20 do
    ab.async.each({ 1, 2, 3, 4, 5, 6, 7, 8 }, function(i) says(round .. "." .. i) end, { limit = 8 })
    says(tostring(round))
  end
end

function M.test_a_handle_that_is_closed_early()
  for i = 1, 20 do
    local process = assert(sb:spawn "sleep 3000")
    says(tostring(i))
    process:close()
    says(tostring(i))
  end
end

function M.test_a_command_that_cannot_start()
  for i = 1, 5 do
    lu.assertEquals(assert(sb:exec({ "no-such-program" }, { timeout_s = 60 })).exit_code, 127)
    lu.assertNotNil(sb:exec({ "true" }, { cwd = "/no/such/place", timeout_s = 60 }))
    says(tostring(i))
  end
end

return M

--- What a sandbox takes that does nothing.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"
local os_sys = require "agentbox.sys.os"

local M = {}

-- /proc/PID/status of our own children that are pid 1 of a sandbox.
local function inits()
  local found, mine = {}, tostring(os_sys.pid())
  for _, entry in ipairs(assert(fs.list "/proc")) do
    local status = entry.name:find "^%d+$" and fs.read("/proc/" .. entry.name .. "/status", 8192) or ""
    if status:match "\nPPid:%s*(%d+)" == mine and status:find "^Name:%s*init\n" then found[#found + 1] = status end
  end
  return found
end

local function kb(status, what)
  return tonumber(status:match("\n" .. what .. ":%s*(%d+) kB"))
end

-- Stack and vDSO lie far from the program: with them it would be twice as much.
function M.test_pid_1_has_its_memory_in_one_place()
  local sb <close> = assert(ab.sandbox.create {})
  local found = inits()
  lu.assertEquals(#found, 1)
  lu.skipIf(kb(found[1], "VmSize") > 2 ^ 30, "the memory of AddressSanitizer is everywhere")
  lu.assertTrue(kb(found[1], "VmPTE") <= 24, found[1])
  lu.assertEquals(kb(found[1], "VmStk"), 0, "the zygote's stack")
  lu.assertEquals(assert(sb:exec("echo still here")).stdout, "still here\n")
end

return M

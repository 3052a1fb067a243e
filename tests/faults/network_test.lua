--- The way to a model server is gone without a word (fault B86).
local fs = require "agentbox.fs"
local lu = require "luaunit"
local test = require "agentbox.test"

local here = arg[0]:match "^(.*/)" or "./"
local live = dofile(here .. "../support/live.lua")

local M = {}

function M.test_b86_a_black_hole_is_noticed_while_the_model_thinks()
  local host <close> = live.sandbox "none"
  if assert(host:exec "unshare -n sh -c 'ip link set lo up && iptables -S'").exit_code ~= 0 then
    test.skip "a network namespace, ip and iptables are needed"
  end
  local program = assert(fs.readlink "/proc/self/exe")
  local script = assert(fs.realpath(here .. "black_hole.lua"))
  local command = ("unshare -n sh -c 'ip link set lo up && exec %s script %s'"):format(program, script)
  local out = assert(host:exec(command, { timeout_s = 200 }))
  lu.assertStrContains(out.stdout, "after\t2\tnetwork: ", out.stderr)
end

return M

--- The clock of the machine is set while rollouts run.
local fs = require "agentbox.fs"
local lu = require "luaunit"
local os_ = require "agentbox.sys.os"
local test = require "agentbox.test"

local live = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/live.lua")

local M = {}

local SCRIPT = [[
local ab = require "agentbox"
local list = { tool_calls = { { name = "list_files", arguments = {} }, { name = "run_command", arguments = { command = "true" } } } }
local problems, longest = 0, 0
for i = 1, 5 do
  local t = assert(ab.rollout.run {
    task = { task_id = "t", description = "d", verifier = { command = "true" } }, sandbox = { backend = "none" },
    model = ab.model.scripted { list, list, "done" },
  })
  problems = problems + #require "agentbox.record.check".check(t.line)
  longest = math.max(longest, t.line.finished - t.line.started)
  for _, runs in ipairs { t.line.calls, t.line.tool_runs } do
    for _, run in ipairs(runs) do longest = math.max(longest, run.t[#run.t] - run.t[1]) end
  end
end
print(problems, longest < 1000)
]]

function M.test_times_of_a_record_do_not_follow_a_clock_that_is_set()
  local library = os_.env "AGENTBOX_TEST_CLOCK_JUMP"
  if (library or "") == "" then test.skip "AGENTBOX_TEST_CLOCK_JUMP names no library to preload" end
  local host <close> = live.sandbox "none"
  assert(host:write("s.lua", SCRIPT))
  local out = assert(host:exec({ assert(fs.readlink "/proc/self/exe"), "script", "s.lua" }, {
    env = { LD_PRELOAD = library, ASAN_OPTIONS = "verify_asan_link_order=0:detect_leaks=0" },
  }))
  lu.assertEquals(out.stdout, "0\ttrue\n", out.stderr)
end

return M

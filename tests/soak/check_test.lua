--- A large run is checked in memory that does not grow with it, and a record grows linearly with its turns.
---
--- A few megabytes by default, ten gigabytes with AGENTBOX_SOAK.
local lu = require "luaunit"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"

local here = arg[0]:match "^(.*)/[^/]*$"
local binary = assert(fs.realpath "/proc/self/exe")
local MEGABYTES = os.getenv "AGENTBOX_SOAK" and 10000 or 12
local MEMORY_KIB = 600 * 1024 -- of address space that is written to; sanitizers map much more than they use

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-check-soak") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function make(run, megabytes, turns)
  lu.assertTrue(os.execute(("'%s' script '%s/../../bench/make_run.lua' '%s' %s %g %d >/dev/null")
    :format(binary, here, dir, run, megabytes, turns)))
end

local function check(run)
  local pipe = assert(io.popen(("ulimit -d %d; exec '%s' traj check --json '%s/%s'"):format(MEMORY_KIB, binary, dir, run), "r"))
  local report = json.decode(pipe:read "a")
  lu.assertTrue(pipe:close())
  return report
end

function M.test_a_large_run()
  make("large", MEGABYTES, 20)
  local report = check "large"
  lu.assertEquals(report.problem_count, 0)
  lu.assertTrue(report.bytes >= MEGABYTES * 1e6)
  lu.assertEquals({ report.trainable, report.drift.first }, { report.trajectories, report.trajectories })
  lu.assertEquals(report.drift.clean, 19 * report.trajectories)
  lu.assertEquals(report.groups, report.trajectories // 8)
end

-- Bytes of a line, on average of eight rollouts.
local function size(turns)
  make("t" .. turns, 0.001, turns)
  return assert(fs.stat(("%s/t%d/trajectories-00000.jsonl"):format(dir, turns))).size // 8
end

function M.test_a_record_grows_linearly_with_its_turns()
  local ten, twenty, forty = size(10), size(20), size(40)
  local first, second = twenty - ten, forty - twenty
  lu.assertTrue(second < 2 * first * 1.15, ("10 turns more are %d bytes, 20 more are %d"):format(first, second))
end

return M

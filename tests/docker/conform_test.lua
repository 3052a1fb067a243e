--- What `agentbox sandbox conform` says of Docker and podman; its cases have faults B01, B03, B08, B14, B16, B18, B19, B25.
local async = require "agentbox.async"
local conform = require "agentbox.conform"
local lu = require "luaunit"
local test = require "agentbox.test"

local image = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/testimage.lua")

local M = {}

local function conforms(engine)
  image.prepare(engine)
  local bad, ok, spec = {}, 0, { backend = engine, image = image.NAME }
  local verdicts = async.each(conform.cases(), function(case) return conform.judge(case, spec) end, { limit = 4 })
  for _, verdict in ipairs(verdicts) do
    if verdict.verdict == "FAIL" then bad[#bad + 1] = verdict.id .. ": " .. verdict.why end
    if verdict.verdict == "ok" then ok = ok + 1 end
  end
  lu.assertEquals(#bad, 0, table.concat(bad, "\n", 1, math.min(#bad, 8)))
  lu.assertTrue(ok > 50)
end

function M.test_docker() conforms "docker" end

function M.test_podman()
  if not os.getenv "AGENTBOX_TEST_PODMAN" then test.skip "no podman here" end
  conforms "podman"
end

return M

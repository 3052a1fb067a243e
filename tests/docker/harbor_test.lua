--- A task of ours in Harbor's form, its image built by Docker's daemon, run in containers: same rewards.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local lu = require "luaunit"

local here = arg[0]:match "^(.*/)" or "./"
local image = dofile(here .. "../support/testimage.lua")

local M = {}

local dir, api

function M.setUp()
  api = image.prepare "docker"
  dir = assert(fs.tmpdir "agentbox-harbor-")
end

function M.tearDown()
  for _, one in ipairs(assert(api:call("GET", "/images/json", { query = { filters = { reference = { "harbor/*" } } } }))) do
    assert(api:call("DELETE", "/images/" .. one.Id, { query = { force = true } }))
  end
  assert(fs.remove(dir, true))
end

local function run(task, agent)
  local traj = assert(ab.rollout.run {
    task = task, model = ab.model.scripted { "done" }, agent = agent, sandbox = { backend = "docker" },
  })
  return { traj.final_status, traj.reward }
end

-- busybox has no bash, and its sh does for a test.sh of ours.
local WITH_BASH = "WORKDIR /workspace\nRUN printf '#!/bin/sh\\nexec sh \"$@\"\\n' > /bin/bash && chmod 755 /bin/bash\n"

function M.test_round_trip()
  local ours = assert(ab.task.load(here .. "../../tasks/shell_report"))
  local out = dir .. "/shell_report"
  assert(ab.harbor.save(ours, out, { image = image.NAME }))
  local file = assert(fs.read(out .. "/environment/Dockerfile", 1 << 20))
  assert(fs.write(out .. "/environment/Dockerfile", (file:gsub("WORKDIR /workspace\n", function() return WITH_BASH end))))
  local task = assert(ab.harbor.load(out, { backend = "docker", network = "none" }))
  lu.assertEquals(task.workspace, "/workspace")
  lu.assertEquals(run(task, "oracle"), { "success", 1.0 })
  lu.assertEquals(run(task, "idle"), { "failed", 0.0 })
end

return M

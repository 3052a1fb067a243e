--- What a rollout holds while its model thinks: thousands of them wait at once.
local ab = require "agentbox"
local lu = require "luaunit"

local M = {}

local COUNT = 60

local echo = ab.tool.define {
  api = 1, name = "echo", description = "Says it.", parameters = { { "n", "integer" } }, run = function(_, args) return "n " .. args.n end,
}

-- What a finalizer looked at is freed by the collection after that.
local function heap_bytes()
  for _ = 1, 3 do collectgarbage() end
  return collectgarbage "count" * 1024
end

-- Bytes of Lua's heap for each of the rollouts that wait for the answer after so many turns.
local function bytes_each(turns)
  local gate, came, here, script = ab.async.channel(), ab.async.channel(), 0, {}
  for i = 1, turns do script[i] = { tool_calls = { { name = "echo", arguments = { n = i } } } } end
  script[turns + 1] = function()
    here = here + 1
    if here == COUNT then came:send(true) end
    gate:receive()
    return "done"
  end
  local task = ab.task.new { task_id = "w", description = "Wait.", verifier = { type = "command", command = "true" } }
  local model = ab.model.scripted(script)
  local function wait()
    local traj = assert(ab.rollout.run {
      task = task, model = model, tools = "custom", custom_tools = { echo }, sandbox = { backend = "none" },
    })
    lu.assertEquals({ traj.stop_reason, traj.metrics.steps }, { "final_answer", turns })
  end
  local bytes
  ab.async.scope(function(scope)
    local before = heap_bytes()
    for _ = 1, COUNT do scope:spawn(wait) end
    lu.assertTrue(came:receive(60), "the rollouts did not come to wait")
    bytes = (heap_bytes() - before) // COUNT
    gate:close()
  end)
  return bytes
end

-- A table that gets one member too many is twice as large, which nobody sees where it is written.
function M.test_a_rollout_that_waits_is_small()
  bytes_each(0) -- what is loaded and remembered once
  local first, later = bytes_each(0), bytes_each(10)
  lu.assertTrue(first < 13500, ("%d bytes before the first answer"):format(first))
  lu.assertTrue(later - first < 3100 * 10, ("%d bytes more for each turn"):format((later - first) // 10))
end

return M

--- What durable writing costs the engine: the same run, with a folder and without, in turn.
---
---     agentbox script bench/write_cost.lua [ROLLOUTS] [ROUNDS] [SLOW-LLM]
---
--- Ten turns of chat over HTTP, a command in a native sandbox in each. Without a folder the record is made, too, and let
--- go. CPU seconds of the whole engine, its pool threads included.
local ab = require "agentbox"
local memory = require "agentbox.runner.memory"

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local TURNS, LATENCY_MS, AT_ONCE = 10, 20, 64

-- Ends with the block, on every path.
local function start_server(program)
  local pipe = assert(io.popen(("exec %s %d %d true"):format(program, LATENCY_MS, TURNS)))
  local port = assert(pipe:read "n", "the server did not start")
  return setmetatable({ url = ("http://127.0.0.1:%d"):format(port) }, { __close = function(self)
    ab.http.request { url = self.url .. "/quit", proxy = false }
    pipe:close()
  end })
end

local function cpu_of(model, count, out)
  local made = 0
  collectgarbage()
  local began = os.clock()
  local run <close> = assert(ab.runner.start {
    tasks = function()
      made = made + 1
      if made > count then return nil end
      return { task_id = "t" .. made, description = "Run true.", verifier = { type = "command", command = "true" } }
    end,
    model = model, concurrency = AT_ONCE, lookahead = AT_ONCE, out = out, agentbox_json = false, max_steps = TURNS + 5,
  })
  local sum = run:wait()
  assert(sum.solved == count, "a rollout failed")
  return os.clock() - began
end

--- Pairs of CPU seconds for `count` rollouts: without a folder, and with one.
---@param count integer
---@param rounds integer
---@param program string   # bench-slow-llm
---@return number[] without
---@return number[] with
local function measure(count, rounds, program)
  getmetatable(memory.new()).append = function() return {} end
  local server <close> = start_server(program)
  local model = ab.model.open { model = "m", base_url = server.url .. "/v1", timeout_s = 600 }
  local dir = assert(ab.fs.tmpdir "agentbox-bench-")
  local _ <close> = setmetatable({}, { __close = function() ab.fs.remove(dir, true) end })
  local without, with = {}, {}
  cpu_of(model, AT_ONCE, dir .. "/first")
  for i = 1, rounds do
    without[i] = cpu_of(model, count)
    with[i] = cpu_of(model, count, dir .. "/" .. i)
  end
  return without, with
end

if arg[0]:find "write_cost%.lua$" then
  ab.log.set_level "error"
  local count, rounds = tonumber(arg[1]) or 200, tonumber(arg[2]) or 10
  local without, with = measure(count, rounds, arg[3] or here .. "/../build/release/bench/bench-slow-llm")
  local a, b = 0, 0
  for i = 1, rounds do
    print(("%.3f s without, %.3f s with: %+.1f %%"):format(without[i], with[i], 100 * (with[i] / without[i] - 1)))
    a, b = a + without[i], b + with[i]
  end
  print(("writing is %.1f %% of the engine's CPU, %.0f us a rollout"):format(100 * (b - a) / b, (b - a) / rounds / count * 1e6))
end

return measure

-- Random trees of scopes, timeouts, queues and files, cancelled at random moments. Seeded: a failure names its seed.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.fs"
local lu = require "luaunit"
local rand = require "agentbox.rand"

local M = {}

local world -- what one run shares

local actions

local function act(depth)
  local opened = false
  local guard <close> = setmetatable({}, { __close = function() -- luacheck: ignore guard
    if opened then world.open = world.open - 1 end
    if world.rand:int(1, 3) == 1 then async.yield() end
  end })
  world.open, opened = world.open + 1, true
  for _ = 1, world.rand:int(1, 3) do
    actions[world.rand:int(1, depth > 0 and #actions or 6)](depth - 1)
  end
end

local function children(depth)
  local list = {}
  for i = 1, world.rand:int(1, 4) do list[i] = function() act(depth) end end
  return list
end

actions = {
  function() async.yield() end,
  function() async.sleep(world.rand:float() * 0.003) end,
  function()
    local permit <close> = world.sem:acquire(world.rand:float() * 0.003) -- luacheck: ignore permit
    async.yield()
  end,
  function()
    if world.rand:int(1, 2) == 1 then async.timeout(0.002, world.channel.send, world.channel, 1) else world.channel:receive(0.001) end
  end,
  function() assert(fs.write(world.dir .. "/f" .. world.rand:int(1, 3), "text", { sync = false })) end,
  function() if world.rand:int(1, 12) == 1 then error(err.new("network", "chaos")) end end,
  function(depth) async.all(children(depth)) end,
  function(depth) async.race(children(depth)) end,
  function(depth) async.timeout(world.rand:float() * 0.004, act, depth) end,
  function(depth) pcall(act, depth) end,
  function(depth)
    local f = fiber.spawn(act, depth)
    local guard <close> = setmetatable({}, { __close = function() -- luacheck: ignore guard
      f:cancel()
      f:join()
    end })
    if world.rand:int(1, 2) == 1 then async.yield() end
    f:cancel()
    f:join()
  end,
  function(depth)
    async.scope(function(s)
      s:spawn(act, depth)
      act(depth)
      if world.rand:int(1, 4) == 1 then s:cancel() end
    end)
  end,
}

local function run(seed)
  world = {
    rand = rand.new(seed), open = 0, sem = async.semaphore(2), channel = async.channel(3), dir = M.dir,
  }
  local root = fiber.spawn(function()
    async.scope(function(s)
      for _ = 1, 4 do s:spawn(act, 4) end
    end)
  end)
  if seed % 2 == 0 then
    async.sleep(world.rand:float() * 0.01)
    root:cancel()
  end
  local ended, ok, e = async.timeout(60, function() return "ended", root:join() end)
  lu.assertEquals(ended, "ended", "seed " .. seed)
  if not ok then lu.assertTrue(e.code == "network" or e.code == "cancelled", ("seed %d: %s"):format(seed, tostring(e))) end
  lu.assertEquals({ seed, world.open, world.sem:free() }, { seed, 0, 2 })
end

function M.setUp()
  M.dir = assert(fs.tmpdir "agentbox-chaos-")
end

function M.tearDown()
  assert(fs.remove(M.dir, true))
end

function M.test_nothing_is_lost_whatever_is_cancelled()
  local before = fiber.stats().fibers
  for seed = 1, 100 do run(seed) end
  lu.assertEquals(fiber.stats().fibers, before)
end

return M

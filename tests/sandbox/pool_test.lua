--- Sandboxes that are ready before they are asked for.
local ab = require "agentbox"
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local lu = require "luaunit"

local M = {}

local LIMITS = { memory_mb = 96, pids_limit = 64 }

local function spec_of(more)
  local spec = { limits = LIMITS }
  for key, value in pairs(more or {}) do spec[key] = value end
  return spec
end

local function close_all(list)
  for _, sb in ipairs(list) do sb:close() end
end

function M.test_what_is_claimed_was_ready_and_is_nobody_elses()
  local pool <close> = ab.sandbox.pool { size = 3 }
  assert(pool:fill(spec_of()))
  lu.assertEquals({ pool:count(), pool.hits, pool.misses }, { 3, 0, 0 })
  local claimed = async.each({ 1, 2, 3, 4, 5, 6 }, function() return assert(pool:claim(spec_of { name = "any" })) end)
  local seen = {}
  for i, sb in ipairs(claimed) do
    lu.assertNil(seen[sb.id], "the same one twice")
    seen[sb.id] = true
    assert(sb:write("mine", tostring(i)))
  end
  for i, sb in ipairs(claimed) do
    lu.assertEquals(assert(sb:exec("cat mine; ls | wc -l")).stdout, i .. "1\n")
  end
  lu.assertTrue(pool.hits >= 3)
  lu.assertEquals(pool.hits + pool.misses, 6)
  close_all(claimed)
end

function M.test_it_is_filled_again()
  local pool <close> = ab.sandbox.pool { size = 2 }
  for _ = 1, 5 do
    assert(pool:fill(spec_of()))
    lu.assertEquals(pool:count(), 2)
    local sb <close> = assert(pool:claim(spec_of()))
    lu.assertEquals(assert(sb:exec "ls -A | wc -l").stdout, "0\n")
  end
  lu.assertEquals({ pool.hits, pool.misses }, { 5, 0 })
end

function M.test_only_those_with_the_same_options_stand_for_each_other()
  local pool <close> = ab.sandbox.pool { size = 1 }
  local env = { WHO = "first" }
  assert(pool:fill(spec_of { env = env }))
  env.WHO = "second" -- the caller's table is the caller's
  local other <close> = assert(pool:claim(spec_of { env = env }))
  lu.assertEquals({ assert(other:exec "echo $WHO").stdout, pool.hits }, { "second\n", 0 })
  for _, spec in ipairs { spec_of { workspace = "/work" }, spec_of { user = 0 }, spec_of { network = { allow = { "x.org:80" } } },
    { limits = { memory_mb = 97, pids_limit = 64 } } } do
    local sb <close> = assert(pool:claim(spec))
    lu.assertEquals(sb.workspace, spec.workspace or "/workspace")
  end
  lu.assertEquals({ pool.hits, pool.misses }, { 0, 5 })
  local same <close> = assert(pool:claim(spec_of { env = { WHO = "first" }, backend = "native" }))
  lu.assertEquals({ assert(same:exec "echo $WHO").stdout, pool.hits }, { "first\n", 1 })
end

function M.test_what_died_is_not_given()
  local pool <close> = ab.sandbox.pool { size = 2 }
  assert(pool:fill(spec_of()))
  local shelf = pool._shelves[1]
  local victim = shelf.ready[2]
  local pid = victim._raw:pid()
  lu.assertTrue(victim._raw:is_alive())
  os.execute("kill -9 " .. pid)
  while victim._raw:is_alive() do async.yield() end
  local sb <close> = assert(pool:claim(spec_of()))
  lu.assertNotEquals(sb.id, victim.id)
  lu.assertEquals({ assert(sb:exec "echo lives").stdout, pool.dead, pool.hits }, { "lives\n", 1, 1 })
  assert(pool:fill(spec_of()))
  lu.assertEquals(pool:count(), 2)
  lu.assertFalse(victim._raw:is_open()) -- closed by the pool
end

-- The pool waits while anybody else's sandbox is being made or waited for.
function M.test_those_who_wait_for_a_sandbox_come_first()
  ab.sandbox.limit_boots(1)
  local pool <close> = ab.sandbox.pool { size = 4 }
  local boxes, most = {}, 0
  async.each({ 1, 2, 3, 4, 5, 6, 7, 8 }, function(i)
    boxes[i] = assert(pool:claim(spec_of()))
    most = math.max(most, pool:count())
  end)
  lu.assertEquals({ pool.misses, most }, { 8, 0 })
  assert(pool:fill(spec_of()))
  lu.assertEquals(pool:count(), 4)
  ab.sandbox.limit_boots(8)
  close_all(boxes)
end

-- Who claimed one is about to run something in it. With a lull that does not end, only what may not wait for that is
-- done: keeping half of them, and what somebody waits for.
function M.test_the_pool_gives_way_to_those_who_claimed()
  local pools = require "agentbox.sandbox.pool"
  local _ <close> = setmetatable({ pools.LULL_S }, { __close = function(self) pools.LULL_S = self[1] end })
  pools.LULL_S = 1e6
  local pool <close> = ab.sandbox.pool { size = 4 }
  assert(pool:fill(spec_of()))
  local claimed = { assert(pool:claim(spec_of())), assert(pool:claim(spec_of())) }
  assert(claimed[1]:exec "true")
  ab.sandbox.create(spec_of()):close()
  assert(claimed[2]:exec "true")
  lu.assertEquals(pool:count(), 2)
  claimed[3] = assert(pool:claim(spec_of()))
  while pool:count() < 2 do async.yield() end
  assert(pool:fill(spec_of()))
  lu.assertEquals({ pool:count(), pool.hits, pool.misses }, { 4, 3, 0 })
  close_all(claimed)
end

-- A program was run in each, so that the first one of whoever claims it is no slower than the next: it left nothing.
function M.test_what_is_ready_is_warm_and_untouched()
  local pool <close> = ab.sandbox.pool { size = 1 }
  assert(pool:fill(spec_of()))
  local sb <close> = assert(pool:claim(spec_of()))
  lu.assertEquals(assert(sb:diff()), {})
  local new <close> = assert(ab.sandbox.create(spec_of()))
  local function seen(box) return assert(box:exec "set -- /proc/[0-9]*; echo $(ls -A) $# $$").stdout:match "^(%d+) (%d+)\n$" end
  local alive, pid = seen(sb)
  local alive_new, pid_new = seen(new)
  lu.assertEquals(alive, alive_new)
  lu.assertTrue(tonumber(pid) > tonumber(pid_new), "nothing was run in it")
end

function M.test_kinds_are_bounded()
  local pool <close> = ab.sandbox.pool { size = 1 }
  for i = 1, 10 do assert(pool:fill(spec_of { env = { N = tostring(i) } })) end
  lu.assertEquals(pool:count(), require "agentbox.sandbox.pool".MAX_KINDS)
  local newest <close> = assert(pool:claim(spec_of { env = { N = "10" } }))
  local oldest <close> = assert(pool:claim(spec_of { env = { N = "1" } }))
  lu.assertEquals({ pool.hits, pool.misses }, { 1, 1 })
  lu.assertEquals(assert(newest:exec "echo $N").stdout .. assert(oldest:exec "echo $N").stdout, "10\n1\n")
end

-- That nothing is left of it is what the runner of these tests looks at.
function M.test_the_end()
  local pool = ab.sandbox.pool { size = 2 }
  assert(pool:fill(spec_of()))
  local ready = { table.unpack(pool._shelves[1].ready) }
  local mine <close> = assert(pool:claim(spec_of()))
  pool:close()
  pool:close()
  lu.assertEquals({ ready[1]._raw:is_open(), ready[2]._raw:is_open(), pool:count() }, { false, true, 0 })
  lu.assertEquals(assert(mine:exec "echo mine").stdout, "mine\n")
  local none, problem = pool:claim(spec_of())
  lu.assertEquals({ none, problem.code }, { nil, "badarg" })
  local waits
  local before = fiber.stats().ops
  async.scope(function(scope)
    local other = ab.sandbox.pool { size = 200 }
    scope:spawn(function() waits = select(2, other:fill(spec_of())) end)
    while other:count() == 0 do async.yield() end
    other:close() -- in the middle of being filled
  end)
  lu.assertEquals(waits.code, "cancelled")
  while fiber.stats().ops > before do async.yield() end -- until the one that was being made is gone
end

function M.test_what_cannot_be()
  local pool <close> = ab.sandbox.pool { size = 1 }
  local _, problem = pool:claim { backend = "none" }
  lu.assertEquals(problem.code, "unsupported")
  _, problem = pool:fill { image = "/no/such/directory" }
  lu.assertNotNil(problem)
  lu.assertEquals(pool:count(), 0)
  lu.assertErrorMsgContains("imag", pool.claim, pool, { imag = "host" })
  lu.assertErrorMsgContains("size", ab.sandbox.pool, { size = 0 })
end

return M

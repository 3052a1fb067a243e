-- Every kind of script that goes wrong by recursion or by size fails alone, beside a hundred fibers that do not.
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local json = require "agentbox.json"
local lu = require "luaunit"
local yaml = require "agentbox.yaml"

local M = {}

function M:setUp() -- luacheck: ignore self
  if require "agentbox.fs".read "/proc/self/maps":find "libtsan" then
    require "agentbox.test".skip "ThreadSanitizer delivers signals in calls of libc only"
  end
end

-- What the script fails with. A hundred others have their turns while it runs.
local function beside_others(fn, limits)
  local finished = 0
  local bad = fiber.spawn(function()
    fiber.current():limit(limits.memory_bytes, limits.cpu_s)
    return fn()
  end)
  async.scope(function(s)
    for _ = 1, 100 do
      s:spawn(function()
        for _ = 1, 3 do async.sleep(0.001) end
        finished = finished + 1
      end)
    end
  end)
  local ok, e = bad:join()
  lu.assertEquals({ finished, ok }, { 100, false })
  return e
end

-- A metamethod that runs itself.
local function itself(event, operate)
  return function()
    local mt = {}
    local value = setmetatable({}, mt)
    mt[event] = function() return operate(value) end
    return operate(value)
  end
end

local function nested(depth)
  local t = {}
  for _ = 1, depth do t = { t } end
  return t
end

local function endless() return 1 << 60 end

-- name = { how it fails: a code or a part of the message, the script, limits }
local kinds = {
  wrapped_coroutines = { "C stack overflow", function()
    local function f() coroutine.wrap(f)() end
    f()
  end },
  resumed_coroutines = { "C stack overflow", function()
    local function f() return select(2, coroutine.resume(coroutine.create(f))) end
    error(f(), 0)
  end },
  -- A slice takes such calls off the C stack: without a count they would nest until an error visits a million frames
  -- for each of them.
  protected_calls = { "limit", function()
    local function f()
      pcall(f)
      pcall(f)
    end
    f()
  end, { cpu_s = 0.1 } },
  protected_calls_in_a_coroutine = { "limit", function()
    local function f()
      pcall(f)
      pcall(f)
    end
    coroutine.wrap(f)()
  end, { cpu_s = 0.1 } },
  handlers_that_recurse = { "limit", function()
    local function f()
      xpcall(f, f)
      xpcall(f, f)
    end
    f()
  end, { cpu_s = 0.1 } },
  handlers_that_fail = { "the end", function()
    for _ = 1, 20 do
      xpcall(error, error)
      xpcall(error, function() error "again" end)
    end
    error "the end"
  end },
  handlers_on_a_full_stack = { "the end", function()
    local function deep() return 1 + deep() end
    xpcall(deep, function() return deep() end)
    error "the end"
  end },
  close = { "C stack overflow", function()
    local function f()
      local guard <close> = setmetatable({}, { __close = function() f() end }) -- luacheck: ignore guard
    end
    f()
  end },
  close_and_error = { "limit", function()
    local function f()
      local guard <close> = setmetatable({}, { __close = function() f() end }) -- luacheck: ignore guard
      error "x"
    end
    f()
  end, { cpu_s = 0.1 } },
  insert_into_what_lies = { "limit", function() table.insert(setmetatable({}, { __len = endless }), 1, 1) end, { cpu_s = 0.1 } },
  remove_from_what_lies = { "limit", function() table.remove(setmetatable({}, { __len = endless }), 1) end, { cpu_s = 0.1 } },
  a_long_sort = { "limit", function()
    local list = {}
    for i = 1, 200000 do list[i] = i * 7919 % 1000003 end
    while true do table.sort(list) end
  end, { cpu_s = 0.1 } },
  tostring = { "C stack overflow", itself("__tostring", tostring) },
  index = { "C stack overflow", itself("__index", function(t) return t.x .. "" end) },
  concat = { "C stack overflow", itself("__concat", function(t) return t .. t end) },
  lt = { "C stack overflow", itself("__lt", function(t) return t < t end) },
  index_chain = { "too long", function()
    local t = {}
    for _ = 1, 10000 do t = setmetatable({}, { __index = t }) end
    return t.x .. ""
  end },
  gsub = { "C stack overflow", function()
    local function f() return (("x"):gsub("x", f)) end
    f()
  end },
  load_nested = { "overflow", function() assert(load("return " .. ("("):rep(1000000))) end },
  load_without_end = { "limit", function() assert(load(function() return " " end)) end, { cpu_s = 0.1 } },
  loop_in_a_metamethod = { "limit", function()
    for _ in ipairs(setmetatable({}, { __index = function() return 1 end })) do end -- luacheck: ignore
  end, { cpu_s = 0.1 } },
  require_each_other = { "C stack overflow", function()
    package.preload.runaway_a = function() require "runaway_b" end
    package.preload.runaway_b = function() require "runaway_a" end
    require "runaway_a"
  end },
  json_of_nested = { "a cycle", function() assert(json.encode(nested(1000000))) end },
  json_of_a_cycle = { "a cycle", function()
    local t = {}
    t[1] = t
    assert(json.encode(t))
  end },
  nested_json = { "nested too deeply", function() assert(json.decode(("["):rep(1000000))) end },
  nested_yaml = { "nested too deeply", function() assert(yaml.decode(("["):rep(100000))) end },
  format = { "nomem", function()
    local s = ("x"):rep(10 << 20)
    for _ = 1, 10 do s = ("%s%s"):format(s, s) end
  end, { memory_bytes = 64 << 20 } },
  concatenation = { "nomem", function()
    local list, s = {}, ("x"):rep(1 << 20)
    for i = 1, 1000 do list[i] = s end
    return table.concat(list)
  end, { memory_bytes = 64 << 20 } },
  move_without_end = { "limit", function() table.move({}, 1, math.maxinteger - 1, 1) end, { cpu_s = 0.1 } },
  rep_of_nothing = { "the end", function() error((""):rep(math.maxinteger) .. "the end", 0) end },
  rep = { "too large", function() return ("x"):rep(1 << 62) end },
  rep_within_reason = { "nomem", function() return ("x"):rep(1 << 30) end, { memory_bytes = 64 << 20 } },
  unpack = { "too many results", function() return table.unpack({}, 1, 10000000) end },
  sort = { "invalid order function", function()
    local list = {}
    for i = 1, 1000 do list[i] = i end
    table.sort(list, function() return true end)
  end },
  coroutines = { "nomem", function()
    local list = {}
    while true do list[#list + 1] = coroutine.create(print) end
  end, { memory_bytes = 32 << 20 } },
}

-- What replaces the library's functions does as they do.
function M.test_moved_and_repeated()
  lu.assertEquals(table.move({ 1, 2, 3, 4 }, 1, 3, 2), { 1, 1, 2, 3 })
  lu.assertEquals(table.move({ 1, 2, 3, 4 }, 2, 4, 1), { 2, 3, 4, 4 })
  lu.assertEquals(table.move({ 1, 2, 3 }, 1, 3, 2, { 9 }), { 9, 1, 2, 3 })
  lu.assertEquals(table.move({ 1 }, 2, 1, 5), { 1 })
  local made = setmetatable({}, { __index = function(_, i) return i * i end })
  lu.assertEquals(table.move(made, 1, 3, 1, {}), { 1, 4, 9 })
  local long = {}
  for i = 1, 100000 do long[i] = i end
  local moved = table.move(long, 1, #long, 2)
  lu.assertEquals({ moved == long, long[1], long[2], long[100001], #long }, { true, 1, 1, 100000, 100001 })
  lu.assertErrorMsgContains("too many elements", table.move, {}, 0, math.maxinteger, 1)
  lu.assertErrorMsgContains("wrap around", table.move, {}, 1, 2, math.maxinteger)
  lu.assertErrorMsgContains("table expected", table.move, 1, 1, 2, 3)
  lu.assertEquals({ ("ab"):rep(3), ("ab"):rep(3, ", "), ("ab"):rep(1, "-"), ("ab"):rep(0), ("ab"):rep(-1), (""):rep(3, "-") },
    { "ababab", "ab, ab, ab", "ab", "", "", "--" })
end

for name, kind in pairs(kinds) do
  M["test_" .. name] = function()
    local how, fn, limits = table.unpack(kind, 1, 3)
    local e = beside_others(fn, limits or {})
    if e.code == how then return end
    lu.assertStrContains(e.msg, how)
  end
end

return M

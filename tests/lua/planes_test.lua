--- Long token lists: out of the line, and back as the same numbers.
local lu = require "luaunit"
local async = require "agentbox.async"
local export = require "agentbox.export"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local plane = require "agentbox.sys.plane"
local planes = require "agentbox.store.planes"
local store = require "agentbox.store"
local traj = require "agentbox.traj"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-planes") end

function M.tearDown() assert(fs.remove(dir, true)) end

function M.test_every_number_comes_back()
  local cases = {
    { "[]", "i4", 0 }, { "[0,-1,2147483647,-2147483648]", "i4", 16 }, { "[ 1 ,\n2 ]", "i4", 8 }, { "[2147483648]", "f4", 4 },
    { "[-0.5,0,-1e-3]", "f8", 24 }, { "[-0.5,0.25]", "f4", 8 }, { "[9007199254740992,0.5]", "f4", 8 }, { "[1e300]", "f8", 8 },
    { "[-0.12345679104328156]", "f4", 4 }, { "[5e-324]", "f8", 8 },
  }
  for _, case in ipairs(cases) do
    local bytes, kind, count = plane.pack(case[1])
    local given = json.decode(case[1])
    lu.assertEquals({ kind, #bytes, count }, { case[2], case[3], #given }, case[1])
    local back = json.decode(plane.unpack(bytes, kind))
    lu.assertEquals(#back, #given)
    for i = 1, #given do lu.assertTrue(back[i] == given[i], case[1]) end
  end
end

function M.test_what_is_no_plane()
  for _, text in ipairs { "{}", "[[1]]", "[1,null]", '["1"]', "[1", "1", "[9007199254740993,0.5]", "[123456789012345678901]" } do
    lu.assertNil(plane.pack(text), text)
  end
  lu.assertNil(plane.unpack("abc", "i4"))
  lu.assertNil(plane.unpack("abcd", "i8"))
  lu.assertNil(plane.unpack("\0\0\xc0\x7f", "f4")) -- NaN
  lu.assertEquals({ plane.measure "[3,-1,2.5]" }, { 3, -1.0, 3.0 })
end

local function list(n, make)
  local out = {}
  for i = 1, n do out[i] = make(i) end
  return out
end

local function long_rollout(id, shift)
  local ro = made.new { id = id }
  local prompt, out = list(3000, function(i) return i * 31 + (shift or 0) end), list(2500, function(i) return i * 7 end)
  local lp = list(2500, function(i) return -i / 977 end)
  ro:reply(made.object("role", "assistant", "content", "a"), { tokens = { prompt = prompt, out = out, lp = lp } })
  local second = table.move(out, 1, #out, #prompt + 1, table.move(prompt, 1, #prompt, 1, {}))
  table.move(list(4000, function(i) return i end), 1, 4000, #second + 1, second)
  ro:reply(made.object("role", "assistant", "content", "b"), { tokens = { prompt = second, out = { 1, 2 }, lp = { -1, -2 } } })
  return ro:finish()
end

local function write(...)
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  for _, t in ipairs { ... } do assert(s:append(t)) end
end

local function same(a, b)
  local memo = {}
  local expected = {}
  for call in a:calls() do expected[#expected + 1] = call.tokens end
  for call in b:calls() do
    memo[#memo + 1] = true
    for _, name in ipairs { "prompt", "out", "lp" } do
      local got, want = call.tokens[name], expected[#memo][name]
      lu.assertEquals(#got, #want)
      for i = 1, #want do lu.assertTrue(got[i] == want[i]) end
    end
  end
  lu.assertEquals(#memo, #expected)
end

function M.test_long_lists_leave_the_line_and_come_back()
  local t = long_rollout "a"
  local before = json.encode(t.line)
  write(t, long_rollout "b")
  lu.assertEquals(json.encode(t.line), before) -- the one in memory is as it was
  local first = io.lines(dir .. "/r/trajectories-00000.jsonl")()
  lu.assertTrue(#first < #before - 30000, #first .. " of " .. #before)
  -- out and prompt, log-probs, and what the second prompt adds, of both
  lu.assertEquals(assert(fs.stat(dir .. "/r/planes-00000.bin")).size, 2 * (3000 * 4 + 2500 * 4 + 2500 * 8 + 4000 * 4))
  for id in ("ab"):gmatch "." do same(t, assert(traj.load(dir .. "/r#" .. id))) end
  lu.assertEquals(assert(require "agentbox.store.check".check(dir)).problems, {})
end

-- Whatever an export looks at of a record: its file holds the lists, and no reference into the run's.
function M.test_exports_hold_the_lists()
  write(long_rollout "a")
  for _, format in ipairs(export.formats()) do
    local out = ("%s/%s.jsonl"):format(dir, format.name)
    assert(export.convert { input = dir .. "/r", format = format.name, out = out })
    local text = fs.read(out) or ""
    lu.assertNil(text:find('{"p":[', 1, true), format.name)
  end
  lu.assertEquals(traj.load(dir .. "/canonical.jsonl"):calls()().tokens.out[2500], 17500)
end

function M.test_short_lists_stay()
  write(made.sample({}, { tokens = true }):finish())
  lu.assertNil(fs.stat(dir .. "/r/planes-00000.bin"))
end

function M.test_files_rotate()
  local before = planes.FILE_BYTES
  planes.FILE_BYTES = 1
  local ok, problem = pcall(write, long_rollout "a", long_rollout "b")
  planes.FILE_BYTES = before
  assert(ok, problem)
  write(long_rollout "c")
  lu.assertNotNil(fs.stat(dir .. "/r/planes-00007.bin"))
  lu.assertNil(fs.stat(dir .. "/r/planes-00008.bin"))
  for id in ("abc"):gmatch "." do same(long_rollout(id), assert(traj.load(dir .. "/r#" .. id))) end
end

-- A fiber that computed for long is sliced anywhere, between a look at the file's end and the write there, too.
function M.test_a_list_is_where_its_line_says_whoever_else_packs()
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  assert(s:append(long_rollout "first"))
  local file = s._planes._file
  local sliced = setmetatable({ size = function()
    local size = file:size()
    for _ = 1, 100 do fiber.yield() end
    return size
  end }, { __index = function(_, name)
    return function(_, ...) return file[name](file, ...) end
  end })
  s._planes._file = sliced
  local given = list(3, function(i) return long_rollout("r" .. i, i) end)
  async.scope(function(scope)
    for _, t in ipairs(given) do scope:spawn(function() assert(s:append(t)) end) end
  end)
  for i = 1, 3 do same(long_rollout("r" .. i, i), assert(traj.load(dir .. "/r#r" .. i))) end
end

function M.test_damage_is_found()
  write(long_rollout "a")
  local path = dir .. "/r/planes-00000.bin"
  local whole = assert(fs.read(path))
  local damages = { whole:sub(1, -2), "\x01" .. whole:sub(2), "" }
  for _, bytes in ipairs(damages) do
    assert(fs.write(path, bytes))
    local t, problem = traj.load(dir .. "/r")
    lu.assertNil(t)
    lu.assertEquals(problem.code, "parse")
    lu.assertStrContains(problem.msg, "planes-00000.bin")
  end
  assert(fs.remove(path))
  local t, problem = traj.load(dir .. "/r")
  lu.assertNil(t)
  lu.assertStrContains(problem.msg, "planes-00000.bin")
end

return M

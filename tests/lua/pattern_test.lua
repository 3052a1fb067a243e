local fiber = require "agentbox.sys.fiber"
local lu = require "luaunit"
local re = require "agentbox.re"

local M = {}

-- tests/unit/test_pattern_stock.c compares these functions with stock Lua on thousands of generated cases.
function M.test_string_has_the_budgeted_functions()
  lu.assertEquals(("key = value "):match "^(%w+)%s*=%s*(.-)%s*$", "key")
  lu.assertEquals({ ("hello"):find("l+") }, { 3, 4 })
  lu.assertEquals({ ("a.b"):find(".", 1, true) }, { 2, 2 })
  lu.assertEquals({ ("abc"):gsub("%w", "<%0>") }, { "<a><b><c>", 3 })
  lu.assertEquals({ ("abc"):gsub("", "-") }, { "-a-b-c-", 4 })
  lu.assertEquals({ ("hello world"):gsub("o", { o = "0" }, 1) }, { "hell0 world", 1 })
  local words = {}
  for at, word in ("one two"):gmatch "()(%a+)" do words[#words + 1] = at .. word end
  lu.assertEquals(words, { "1one", "5two" })
end

local function too_costly(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "limit")
  lu.assertStrContains(err.msg, "pattern too costly")
end

function M.test_trimming_spaces_never_hangs()
  local spaces = (" "):rep(100000)
  lu.assertEquals(spaces:match "^%s*(.-)%s*$", "")
  too_costly(string.match, "x" .. spaces .. "y", "^%s*(.-)%s*$")
  too_costly(string.gsub, spaces .. "x", "%s+$", "")
  too_costly(string.find, ("a"):rep(30000), (".-"):rep(10) .. "b")
  too_costly((spaces .. "x"):gmatch "%s-y")
end

-- Counts turns, not time: a call of 20 million steps is left some fifty times.
local function turns_during(f)
  local turns, ended = 0, false
  local other = fiber.spawn(function()
    while not ended do
      turns = turns + 1
      fiber.yield()
    end
  end)
  local result = table.pack(pcall(f))
  ended = true
  other:join()
  return turns, table.unpack(result, 1, result.n)
end

function M.test_a_costly_pattern_gives_way()
  local text = ("a"):rep(3000)
  local cases = {
    function() return text:find ".-.-b" end,
    function() return text:match "(.-).-(.-)b" end,
    function() return text:gmatch ".-.-b" () end,
    function() return text:gsub(".-.-b", "") end,
    function() return coroutine.wrap(function() return text:find ".-.-b" end)() end,
  }
  for i, f in ipairs(cases) do
    local turns, ok, e = turns_during(f)
    lu.assertEquals({ i, ok, e.code }, { i, false, "limit" })
    lu.assertTrue(turns > 5, ("case %d: %d turns"):format(i, turns))
  end
end

function M.test_what_was_found_before_and_after_a_slice_is_whole()
  local hard = (("a"):rep(150) .. "b"):rep(2) -- every `a` in it is the start of ten thousand ways to fail
  local text = hard .. "abc"
  local cases = {
    { function() return text:find "(a-)(a-)bc()" end, #text - 2, #text, "", "a", #text + 1 },
    { function() return text:match "()a-(a-)bc" end, #text - 2, "a" },
    { function() return text:rep(3):gsub("(a-)(a-)bc", "<%2>") end, (hard .. "<a>"):rep(3), 3 },
    { function() return text:rep(3):gsub("a-a-bc", function(s) return #s end, 2) end, (hard .. "3"):rep(2) .. text, 2 },
    { function() return (hard:gsub("a-a-bc", "")) end, hard },
    { function()
      local seen = {}
      for at, s in text:rep(3):gmatch "()a-(a-)bc" do seen[#seen + 1] = at .. s end
      return table.concat(seen, " ")
    end, ("%da %da %da"):format(#text - 2, 2 * #text - 2, 3 * #text - 2) },
  }
  for i, case in ipairs(cases) do
    local result = table.pack(turns_during(case[1]))
    lu.assertEquals({ i, table.unpack(result, 3) }, { i, table.unpack(case, 2) })
    lu.assertTrue(result[1] > 1, ("case %d was not left"):format(i))
  end
end

function M.test_a_costly_pattern_can_be_cancelled()
  local f = fiber.spawn(function() return re.limited(1 << 40).find(("a"):rep(30000), ".-.-.-b") end)
  for _ = 1, 3 do fiber.yield() end
  f:cancel()
  local ok, e = f:join()
  lu.assertEquals({ ok, e.code }, { false, "cancelled" })
end

function M.test_the_budget_grows_with_the_subject()
  local text, n = ("hello world "):rep(500000):gsub("%s+", " ")
  lu.assertEquals({ #text, n }, { 6000000, 1000000 })
end

function M.test_another_budget()
  local small = re.limited(1000)
  lu.assertEquals(small.match("a=1", "(%w)=(%w)"), "a")
  too_costly(small.find, ("a"):rep(3000), ".-.-b")
  too_costly(small.gsub, ("a"):rep(3000), ".-.-b", "")
  lu.assertError(re.limited, 0)
end

function M.test_misuse_reads_as_in_lua()
  lu.assertErrorMsgContains("malformed pattern (ends with '%')", string.find, "a", "%")
  lu.assertErrorMsgContains("malformed pattern (missing ']')", string.match, "a", "[a")
  lu.assertErrorMsgContains("invalid pattern capture", string.match, "a", "a)")
  lu.assertErrorMsgContains("unfinished capture", string.match, "a", "(a")
  lu.assertErrorMsgContains("invalid capture index", string.gsub, "a", "a", "%2")
  lu.assertErrorMsgContains("invalid replacement value (a table)", string.gsub, "a", "a", function() return {} end)
  lu.assertErrorMsgContains("string/function/table expected", string.gsub, "a", "a", true)
  lu.assertErrorMsgContains("bad argument #2 to 'string.find'", string.find, "a")
end

function M.test_a_callback_may_match_but_not_yield()
  local out = ("a1 b2"):gsub("%a%d", function(s) return s:match "%d" .. s:gsub("%d", "") end)
  lu.assertEquals(out, "1a 2b")
  local co = coroutine.wrap(function() return ("a"):gsub("a", coroutine.yield) end)
  lu.assertErrorMsgContains("yield", co)
end

return M

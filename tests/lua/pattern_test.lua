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

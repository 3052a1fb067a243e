local lu = require "luaunit"
local text = require "agentbox.text"

local M = {}

function M.test_scrub()
  lu.assertEquals({ text.scrub "héllo" }, { "héllo", false })
  lu.assertEquals({ text.scrub "a\xff\xe2\x82z\xed\xa0\x80" }, { "a\u{fffd}\u{fffd}z\u{fffd}\u{fffd}\u{fffd}", true })
  lu.assertTrue(text.valid "é")
  lu.assertFalse(text.valid "\xc3")
  lu.assertEquals(text.count "é€😀a\xff", 5)
end

function M.test_cut_counts_code_points()
  lu.assertEquals({ text.cut("é€😀", 3) }, { "é€😀", 0 })
  lu.assertEquals({ text.cut("é€😀ab", 3) }, { "é€😀\n...[truncated 2 chars]", 2 })
  lu.assertEquals({ text.cut("abc", 1, "\n\n") }, { "a\n\n...[truncated 2 chars]", 2 })
  lu.assertEquals({ text.cut("100% sure\0x", 4) }, { "100%\n...[truncated 7 chars]", 7 })
  lu.assertEquals({ text.cut("abc", 0) }, { "\n...[truncated 3 chars]", 3 })
end

function M.test_cut_bytes_ends_between_characters()
  lu.assertEquals({ text.cut_bytes("aé", 2) }, { "a", true })
  lu.assertEquals({ text.cut_bytes("aé", 3) }, { "aé", false })
  lu.assertEquals({ text.cut_bytes("😀", 3) }, { "", true })
end

return M

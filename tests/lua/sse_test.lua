local lu = require "luaunit"
local sse = require "agentbox.sys.sse"

local M = {}

function M.test_events()
  local p = sse.parser()
  lu.assertEquals(p:feed "data: {\"a\"", {})
  lu.assertEquals(p:feed ":1}\r", {})
  lu.assertEquals(p:feed "\n\r\nid: 7\nevent: e\ndata: x\ndata: y\n\n: comment\ndata: [DONE]\n", {
    { event = "message", data = '{"a":1}' },
    { event = "e", data = "x\ny", id = "7" },
  })
  local last, cut = p:finish()
  lu.assertEquals(last, { { event = "message", data = "[DONE]", id = "7" } })
  lu.assertFalse(cut)
end

function M.test_a_stream_cut_inside_a_line_says_so()
  local p = sse.parser()
  p:feed "data: x\n\ndata: {\"half"
  local last, cut = p:finish()
  lu.assertEquals(last, {})
  lu.assertTrue(cut)
end

function M.test_the_cap_is_an_error()
  local p = sse.parser { max_bytes = 10 }
  local events, err = p:feed "data: more than that\n"
  lu.assertNil(events)
  lu.assertEquals(err.code, "toobig")
  lu.assertErrorMsgContains("unknown option", sse.parser, { max = 1 })
end

return M

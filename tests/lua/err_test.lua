local err = require "agentbox.err"
local fs = require "agentbox.fs"
local lu = require "luaunit"
local sys = require "agentbox.sys.err"

local M = {}

function M.test_codes_of_c_are_the_first_ones_here()
  for i, code in ipairs(sys.codes) do lu.assertEquals(err.codes[i][1], code) end
  lu.assertTrue(#err.codes > #sys.codes)
end

function M.test_new_is_wrap()
  local e = err.new("model", "no answer", { attempts = 3 })
  lu.assertTrue(err.is(e))
  lu.assertEquals(tostring(e), "no answer")
  lu.assertEquals("failed: " .. e, "failed: no answer")
  local w = err.wrap(e, "turn 2")
  lu.assertEquals({ w.code, w.msg, w.attempts }, { "model", "turn 2: no answer", 3 })
  lu.assertEquals(e.msg, "no answer")
  lu.assertEquals(err.wrap("text", "x").code, "defect")
  lu.assertFalse(err.is { code = "model" })
  lu.assertFalse(err.is "model")
  lu.assertErrorMsgContains("unknown error code 'nope'", err.new, "nope", "x")
end

function M.test_from_c_has_code_op_sys_and_the_callers_line()
  local _, e = fs.read "/does/not/exist"
  local line = debug.getinfo(1, "l").currentline - 1
  lu.assertEquals({ e.code, e.op, e.sys }, { "notfound", "fs.read", 2 })
  lu.assertStrContains(e.where, "err_test.lua:" .. line)
  lu.assertStrContains(tostring(e), "/does/not/exist")
end

function M.test_raised_by_assert_it_keeps_its_fields()
  local ok, e = pcall(function() assert(fs.read "/does/not/exist") end)
  lu.assertFalse(ok)
  lu.assertEquals(e.code, "notfound")
end

function M.test_infra_and_class()
  for _, code in ipairs { "sandbox", "network", "timeout", "model", "io", "protocol" } do
    lu.assertTrue(err.infra(err.new(code, "x")), code)
  end
  for _, code in ipairs { "cancelled", "nomem", "limit", "defect", "full", "notfound" } do
    lu.assertFalse(err.infra(err.new(code, "x")), code)
  end
  lu.assertTrue(err.infra(err.new("full", "x", { host = true })))
  lu.assertTrue(err.infra(err.new("sys", "Too many open files", { sys = 24 })))
  lu.assertFalse(err.infra(err.new("sys", "Directory not empty", { sys = 39 })))
  lu.assertFalse(err.infra "text")
  lu.assertEquals(err.class(err.new("sandbox", "x")), "sandbox")
  lu.assertEquals(err.class(err.new("model", "x")), "model_server")
  lu.assertEquals(err.class(err.new("task", "x")), "task")
  lu.assertEquals(err.class(err.new("defect", "x")), "engine")
  lu.assertEquals(err.class "text", "engine")
end

return M

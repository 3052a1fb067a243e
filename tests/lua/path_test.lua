local lu = require "luaunit"
local path = require "agentbox.path"

local M = {}

function M.test_join()
  lu.assertEquals(path.join("a", "b/", "c"), "a/b/c")
  lu.assertEquals(path.join("a", "", "b"), "a/b")
  lu.assertEquals(path.join("a", "/b"), "/b")
  lu.assertEquals(path.join(), "")
end

function M.test_clean()
  local cases = {
    ["a/./b/../c"] = "a/c", ["/a/../../b"] = "/b", ["../a/../.."] = "../..", ["a/.."] = ".", ["//a//b/"] = "/a/b",
    ["/"] = "/", [""] = ".",
  }
  for given, expected in pairs(cases) do lu.assertEquals(path.clean(given), expected, given) end
end

function M.test_parts()
  for given, dir in pairs { ["a/b"] = "a", a = ".", ["/a"] = "/", ["/"] = "/", ["a/b/"] = "a" } do
    lu.assertEquals(path.dir(given), dir, given)
  end
  lu.assertEquals({ path.base "a/b", path.base "a/", path.base "/" }, { "b", "a", "" })
  lu.assertEquals({ path.split_ext "x/a.tar.gz" }, { "a.tar", ".gz" })
  lu.assertEquals({ path.split_ext ".bashrc" }, { ".bashrc", "" })
end

function M.test_is_inside()
  for _, p in ipairs { "a", "a/b", "./a", "a/./b", "a..b", "..a" } do lu.assertTrue(path.is_inside(p), p) end
  for _, p in ipairs { "", ".", "./", "..", "a/..", "../a", "a/../../b", "/a", "a\0b" } do
    lu.assertFalse(path.is_inside(p), p)
  end
end

function M.test_abs()
  lu.assertEquals(path.abs "/a/../b", "/b")
  lu.assertEquals(path.abs "x", require "agentbox.fs".cwd() .. "/x")
end

return M

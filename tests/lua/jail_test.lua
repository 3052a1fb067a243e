local glob = require "agentbox.glob"
local jail = require "agentbox.jail"
local lu = require "luaunit"

local M = {}

function M.test_inside()
  local cases = {
    ["foo.py"] = "/workspace/foo.py", ["./x"] = "/workspace/x", ["a//b/./c"] = "/workspace/a/b/c",
    ["a/../b"] = "/workspace/b", [""] = "/workspace", ["."] = "/workspace", ["/workspace/"] = "/workspace",
    ["/workspace/x.py"] = "/workspace/x.py", ["/workspace/../workspace/x"] = "/workspace/x",
    ["../workspace/ok"] = "/workspace/ok", ["a/../../workspace/x"] = "/workspace/x", ["a\\..\\b"] = "/workspace/a\\..\\b",
    ["src/a/b.py"] = "/workspace/src/a/b.py", ["a\nb"] = "/workspace/a\nb",
  }
  for given, expected in pairs(cases) do lu.assertEquals(jail.resolve(given, "/workspace"), expected) end
end

function M.test_outside()
  for _, path in ipairs { "/etc/passwd", "/", "/workspace2/x", "../etc/passwd", "a/../../outside", "//etc", "//workspace/x",
    "../../../../workspace/ok", "a\0b" } do
    local got, reason = jail.resolve(path, "/workspace")
    lu.assertNil(got, path)
    lu.assertIsString(reason)
  end
end

function M.test_workspace_must_be_absolute_and_root_accepts_all()
  lu.assertNil(jail.resolve("x", "workspace"))
  lu.assertEquals(jail.resolve("/etc/passwd", "/"), "/etc/passwd")
end

function M.test_starter_names()
  lu.assertEquals(jail.starter "a/./b.py", "a/b.py")
  lu.assertEquals(jail.starter "/workspace/b.py", "b.py")
  for _, name in ipairs { "", ".", "../x", "/etc/x", "//x", "a/", "a\0b", ("n"):rep(256) } do
    lu.assertNil((jail.starter(name)), name)
  end
end

function M.test_globs()
  local matches = glob.compile { "test_*.py", "tests/**", "conftest.py", "/pytest.ini", "src/*.c", "a/**/z", "[!x]y" }
  for _, path in ipairs { "test_a.py", "deep/down/test_a.py", "tests/x", "tests/a/b", "x/conftest.py", "pytest.ini",
    "src/a.c", "a/z", "a/b/c/z", "ay" } do
    lu.assertTrue(matches(path), path)
  end
  for _, path in ipairs { "tests", "mytest_a.py", "x/tests/y", "sub/pytest.ini", "src/d/a.c", "xy", "conftest_py" } do
    lu.assertFalse(matches(path), path)
  end
end

function M.test_many_globs_are_each_their_own()
  for round = 1, 2 do
    for i = 1, 600 do
      local matches = glob.compile { ("f%d/*.txt"):format(i) }
      lu.assertTrue(matches(("f%d/a.txt"):format(i)), round .. " " .. i)
      lu.assertFalse(matches(("f%d/a.txt"):format(i + 1)), i)
    end
  end
end

function M.test_a_hostile_glob_ends()
  local matches = glob.compile { ("**/"):rep(30) .. "x" }
  lu.assertFalse(matches(("a/"):rep(60) .. "b"))
end

return M

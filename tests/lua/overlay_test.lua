local lu = require "luaunit"
local diff = require "agentbox.overlay.diff"
local fs = require "agentbox.sys.fs"
local loader = require "agentbox.loader"
local overlay = require "agentbox.overlay"

local M = {}
local dir, before

function M.setUp()
  dir, before = assert(fs.tmpdir "agentbox-overlay"), loader.overlays()
end

function M.tearDown()
  loader.set_overlays(before)
  assert(fs.remove(dir, true))
end

local function put(name, text)
  assert(fs.mkdir((dir .. "/" .. name):match "^(.*)/", true))
  assert(fs.write(dir .. "/" .. name, text))
end

local function named(list, name)
  for _, entry in ipairs(list) do
    if entry.name == name then return entry end
  end
end

function M.test_files_have_module_names()
  put("a/agentbox/tools/x.lua", "return 1")
  put("a/lab/init.lua", "return 1")
  put("a/lab/notes.txt", "")
  local names = {}
  for i, file in ipairs(assert(overlay.files(dir .. "/a"))) do names[i] = file.name end
  lu.assertEquals(names, { "agentbox.tools.x", "lab" })
end

function M.test_a_missing_folder_is_an_error()
  local files, err = overlay.files(dir .. "/none")
  lu.assertNil(files)
  lu.assertEquals(err.code, "notfound")
end

function M.test_list_tells_what_hides_what()
  put("a/agentbox/yaml.lua", "return 1")
  put("a/lab/x.lua", "return 1")
  put("b/lab/x.lua", "return 2")
  loader.set_overlays { dir .. "/b", dir .. "/a" }
  local list = assert(overlay.list())
  lu.assertEquals(named(list, "agentbox.yaml"), { name = "agentbox.yaml", from = dir .. "/a/agentbox/yaml.lua", shadows = true })
  lu.assertEquals(named(list, "lab.x"), { name = "lab.x", from = dir .. "/b/lab/x.lua", shadows = false })
  lu.assertEquals(named(list, "agentbox.json").from, "builtin")
  lu.assertNil(named(list, "agentbox.sys.fs"))
  lu.assertNil(named(list, "agentbox.cli._parse"))
end

function M.test_eject_then_diff()
  loader.set_overlays { dir }
  local path = assert(overlay.eject("agentbox.path", dir))
  lu.assertEquals(path, dir .. "/agentbox/path.lua")
  local drift = named(assert(overlay.diff()), "agentbox.path")
  lu.assertFalse(drift.upstream_changed)
  lu.assertNil(drift.diff)
  local text = assert(fs.read(path))
  lu.assertEquals(overlay.origin(text).name, "agentbox.path")
  assert(fs.write(path, (text:gsub("sha256:%x+", "sha256:00", 1)) .. "-- one more line\n"))
  drift = named(assert(overlay.diff "agentbox.path"), "agentbox.path")
  lu.assertTrue(drift.upstream_changed)
  lu.assertStrContains(drift.diff, "+-- one more line\n")
end

function M.test_eject_does_not_overwrite()
  assert(overlay.eject("agentbox.path", dir))
  local path, err = overlay.eject("agentbox.path", dir)
  lu.assertNil(path)
  lu.assertEquals(err.code, "exists")
  path, err = overlay.eject("agentbox.pth", dir)
  lu.assertNil(path)
  lu.assertEquals(err.code, "notfound")
end

function M.test_an_override_may_call_what_it_overrides()
  put("agentbox/suggest.lua", [[
    local base = require("agentbox").builtin "agentbox.suggest"
    return { nearest = function(...) return "mine, not " .. tostring(base.nearest(...)) end }
  ]])
  loader.set_overlays { dir }
  local kept = package.loaded["agentbox.suggest"]
  package.loaded["agentbox.suggest"] = nil
  local override = require "agentbox.suggest"
  package.loaded["agentbox.suggest"] = kept
  lu.assertEquals(override.nearest("rnu", { "run" }), "mine, not run")
end

function M.test_check_finds_what_a_lab_gets_wrong()
  put("agentbox/tools/ok.lua", [[
    return require("agentbox.tool").define { api = 1, name = "ok", description = "x", run = function() return "" end }
  ]])
  put("agentbox/tools/old.lua", [[
    return require("agentbox.tool").define { api = 1, name = "old", descripton = "x", run = function() return "" end }
  ]])
  put("lab/reads.lua", "return { x = undefined_thing }")
  put("lab/raises.lua", "error 'at load'")
  local problems, count = overlay.check(dir)
  lu.assertEquals(count, 4)
  table.sort(problems)
  local all = table.concat(problems, "\n")
  lu.assertStrContains(all, "lab/reads.lua: reads the global 'undefined_thing', which nobody sets")
  lu.assertStrContains(all, "lab/raises.lua:1: at load")
  lu.assertStrContains(all, "descripton")
  lu.assertNil(all:find("ok.lua", 1, true))
end

function M.test_unified_diff()
  lu.assertNil(diff.unified("a\nb\n", "a\nb\n", "x", "y"))
  lu.assertEquals(diff.unified("a\nb\nc\n", "a\nc\nd\n", "x", "y"),
    "--- x\n+++ y\n@@ -1,3 +1,3 @@\n a\n-b\n c\n+d\n")
  local a, b = {}, {}
  for i = 1, 30 do a[i], b[i] = tostring(i), tostring(i) end
  b[2], b[29] = "two", "twenty-nine"
  local text = diff.unified(table.concat(a, "\n"), table.concat(b, "\n"), "x", "y")
  lu.assertStrContains(text, "@@ -1,5 +1,5 @@\n")
  lu.assertStrContains(text, "@@ -26,5 +26,5 @@\n")
end

return M

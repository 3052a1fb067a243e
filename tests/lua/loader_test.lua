local fs = require "agentbox.fs"
local hash = require "agentbox.hash"
local loader = require "agentbox.loader"
local lu = require "luaunit"

local M = {}

function M:setUp()
  self.dir = assert(fs.tmpdir "agentbox-loader-")
  self.overlays = loader.overlays()
  self.loaded = {}
  for name in pairs(package.loaded) do self.loaded[name] = true end
end

function M:tearDown()
  loader.set_overlays(self.overlays)
  for name in pairs(package.loaded) do
    if not self.loaded[name] then package.loaded[name] = nil end
  end
  assert(fs.remove(self.dir, true))
end

local function put(self, rel, text)
  local path = self.dir .. "/" .. rel
  assert(fs.mkdir(path:match "^(.*)/", true))
  assert(fs.write(path, text, { sync = false }))
  return path
end

function M:test_overlay_replaces_and_reaches_the_builtin()
  local text = 'local base = require "agentbox".builtin "agentbox.path"\n'
      .. "return { api = 1, mine = true, join = base.join }"
  local path = put(self, "one/agentbox/path.lua", text)
  put(self, "two/agentbox/path.lua", "return { second = true }")
  loader.set_overlays { self.dir .. "/one", self.dir .. "/two" }
  local before = package.loaded["agentbox.path"]
  package.loaded["agentbox.path"] = nil
  local mine = require "agentbox.path"
  package.loaded["agentbox.path"] = before
  lu.assertTrue(mine.mine)
  lu.assertEquals(mine.join("a", "b"), "a/b")
  for _, record in ipairs(loader.modules()) do
    if record.name == "agentbox.path" then
      lu.assertEquals({ record.from, record.sha256 }, { path, hash.sha256(text) })
    end
  end
end

function M:test_only_files_are_modules()
  assert(fs.mkdir(self.dir .. "/one/lab_dir.lua", true))
  assert(os.execute("mkfifo " .. self.dir .. "/one/lab_fifo.lua"))
  loader.set_overlays { self.dir .. "/one" }
  lu.assertErrorMsgContains("module 'lab_dir' not found", require, "lab_dir")
  lu.assertErrorMsgContains("module 'lab_fifo' not found", require, "lab_fifo")
end

function M:test_script_folder_comes_before_overlays_and_init_files_count()
  put(self, "script/lab_a.lua", "return 'script'")
  put(self, "over/lab_a.lua", "return 'overlay'")
  put(self, "over/lab_b/init.lua", "return 'folder'")
  loader.set_overlays { self.dir .. "/over" }
  loader.set_script_dir(self.dir .. "/script")
  local a, b = require "lab_a", require "lab_b"
  loader.set_script_dir(nil)
  lu.assertEquals({ a, b }, { "script", "folder" })
end

function M:test_shadowing_a_primitive_names_the_file()
  local path = put(self, "agentbox/sys/widget.lua", "return {}")
  loader.set_overlays { self.dir }
  local ok, msg = pcall(require, "agentbox.sys.widget")
  lu.assertFalse(ok)
  lu.assertStrContains(msg, path)
end

function M:test_bad_files_stop_with_their_name()
  local path = put(self, "lab_bad.lua", "local x = = 1")
  put(self, "lab_code.lua", string.dump(function() return 1 end))
  loader.set_overlays { self.dir }
  local ok, msg = pcall(require, "lab_bad")
  lu.assertFalse(ok)
  lu.assertStrContains(msg, path .. ":1:")
  ok, msg = pcall(require, "lab_code")
  lu.assertFalse(ok)
  lu.assertStrContains(msg, "attempt to load a binary chunk")
end

function M.test_every_record_has_a_hash()
  for _, record in ipairs(loader.modules()) do
    lu.assertEquals(#record.sha256, 64, record.name)
    local source = record.from == "builtin" and loader.builtin_source(record.name)
    if source then lu.assertEquals(record.sha256, hash.sha256(source)) end
  end
end

function M.test_current_folder_is_not_searched()
  lu.assertNil(package.path:find("./?.lua", 1, true))
  lu.assertNil(package.cpath:find("./?.so", 1, true))
end

function M.test_the_library_cannot_read_or_set_undefined_globals()
  local strict = loader.builtin "agentbox.strict"
  lu.assertErrorMsgContains("undefined global 'prnit'", function() return strict.prnit end)
  lu.assertErrorMsgContains("must not set the global 'x'", function() strict.x = 1 end)
  lu.assertEquals(strict.string, string)
end

function M.test_facade_is_a_closed_list()
  local ab = require "agentbox"
  lu.assertErrorMsgContains("no part 'sandbx'", function() return ab.sandbx end)
  lu.assertEquals(ab.path, require "agentbox.path")
end

function M.test_cjson_is_lua_cjson()
  local cjson = require "cjson"
  lu.assertEquals(cjson.encode { 1, "a" }, '[1,"a"]')
  lu.assertEquals(cjson.encode {}, "{}") -- what it loses, and why the engine does not use it
  lu.assertEquals(require "cjson.safe".decode "{", nil)
end

return M

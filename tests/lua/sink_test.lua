local lu = require "luaunit"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local sink = require "agentbox.sys.sink"
local sys = require "agentbox.sys.json"

local M = {}
local dir, path

function M.setUp()
  dir = assert(fs.tmpdir "agentbox-sink")
  path = dir .. "/f"
end

function M.tearDown() assert(fs.remove(dir, true)) end

function M.test_values_one_behind_the_other()
  local file <close> = assert(fs.append_open(path))
  local s = sink.new(file)
  lu.assertTrue(s:put({ a = 1 }, "\n"))
  lu.assertTrue(s:put(sys.trusted "[1,\n2]"))
  lu.assertTrue(s:put(json.array { sys.later(sys.tuple, "x", 2), json.null }, "|"))
  lu.assertEquals(fs.read(path), "", "they come together first")
  lu.assertTrue(s:flush())
  lu.assertEquals(fs.read(path), '{"a":1}\n[1, 2][["x",2],null]|')
  lu.assertTrue(s:flush())
  lu.assertEquals(file:size(), 29)
end

function M.test_much_is_written_without_being_asked()
  local file <close> = assert(fs.append_open(path))
  local s, long = sink.new(file), ("x"):rep(100000)
  for i = 1, 9 do assert(s:put(long .. i, "\n")) end
  lu.assertTrue(file:size() > 800000)
  assert(s:flush())
  local text = assert(fs.read(path))
  lu.assertEquals(#text, 9 * 100004)
  lu.assertEquals(text:sub(-6), 'xxx9"\n')
end

-- No value has to be in memory as a whole: its lists are written while they are made.
function M.test_a_long_value_is_written_piece_by_piece()
  local file <close> = assert(fs.append_open(path))
  local s, list, texts = sink.new(file), {}, {}
  for i = 1, 20 do
    list[i] = sys.later(sys.row { "n", "s" }, i, ("x"):rep(50000))
    texts[i] = ("[%d,%s]"):format(i, ("0,"):rep(30000) .. "0")
  end
  local value = json.object { list = list, texts = sys.texts(texts), last = { {}, { list } } }
  lu.assertTrue(s:put(value))
  lu.assertTrue(file:size() > 2900000)
  lu.assertTrue(s:flush())
  lu.assertEquals(fs.read(path) == json.encode(value), true)
end

function M.test_documents_are_laid_out_into_a_file_each()
  local first <close> = assert(fs.append_open(path))
  local second <close> = assert(fs.append_open(path .. "2"))
  local s, opts = sink.new(), { raw = { "ids" } }
  local value = json.decode '{"a":[1,{"b":"\\u00e9"}],"ids":[1,2]}'
  s:aim(first)
  lu.assertTrue(s:lay_out(value, 2, true, opts))
  lu.assertErrorMsgContains("not flushed", s.aim, s, second)
  lu.assertTrue(s:flush())
  s:aim(second)
  lu.assertTrue(s:lay_out(sys.later(sys.tuple, 1, json.raw "{\"ids\":[1,\n2], \"b\":\r\n3}"), 1, false, opts))
  lu.assertFalse(s:lay_out(sys.trusted '{"a":1,"a":2}', 1), "it takes the values, and nothing of it is there")
  lu.assertTrue(s:lay_out(("x"):rep(200000), 1), "written without being asked")
  lu.assertEquals(fs.read(path), json.encode(json.decode(json.encode(value), opts), { indent = 2, ascii = true }))
  lu.assertEquals(fs.read(path .. "2"), '[\n 1,\n {\n  "ids": [1, 2],\n  "b": 3\n }\n]"' .. ("x"):rep(200000) .. '"')
end

function M.test_what_cannot_be_written_is_an_error()
  assert(fs.write(path, ""))
  local full <close> = assert(fs.append_open "/dev/full")
  local s = sink.new(full)
  assert(s:put(1))
  local ok, problem = s:flush()
  lu.assertNil(ok)
  lu.assertEquals(problem.code, "full")
  ok, problem = s:lay_out(("x"):rep(200000), 2)
  lu.assertNil(ok)
  lu.assertEquals(problem.code, "full")
  for _, value in ipairs { ("x"):rep(200000), { { ("x"):rep(200000) }, 1 } } do
    ok, problem = s:put(value)
    lu.assertNil(ok)
    lu.assertEquals(problem.code, "full")
  end
end

function M.test_misuse_raises()
  lu.assertError(sink.new, io.stdout)
  local file = assert(fs.append_open(path))
  local s = sink.new(file)
  assert(s:put(1, " "))
  local ok, problem = pcall(s.put, s, { a = print })
  lu.assertFalse(ok)
  lu.assertStrContains(problem.msg, "a function has no JSON form")
  lu.assertErrorMsgContains("1 to 16", s.lay_out, s, {}, 0)
  file:close()
  lu.assertErrorMsgContains("closed", s.flush, s)
  lu.assertErrorMsgContains("closed", sink.new, file)
end

return M

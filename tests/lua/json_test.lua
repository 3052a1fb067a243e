local json = require "agentbox.json"
local lu = require "luaunit"

local M = {}

local function round(text, opts)
  local value, err = json.decode(text)
  lu.assertNotNil(value, tostring(err))
  return json.encode(value, opts)
end

function M.test_what_plain_tables_lose_comes_back()
  for _, text in ipairs {
    "{}", "[]", "null", "[null]", "[[],{}]", "1.0", "-0.0", "0.1", "9007199254740993", "18446744073709551615",
    "123456789012345678901234567890", "-9223372036854775808", "1e400", '{"b":1,"a":{"z":0,"y":[]}}', '"\\u0000"',
    '{"a\\u0000b":1}', '"é€😀"', "true", "false",
  } do
    lu.assertEquals(round(text), text)
  end
end

function M.test_floats_look_like_python()
  lu.assertEquals(round "[1e-7,1e16,1E5,1e-400,100000.0]", "[1e-07,1e+16,100000.0,0.0,100000.0]")
end

function M.test_types()
  lu.assertEquals(math.type(json.decode "1"), "integer")
  lu.assertEquals(math.type(json.decode "1.0"), "float")
  local big = json.decode "18446744073709551616"
  lu.assertEquals(tostring(big), "18446744073709551616")
  lu.assertEquals(json.type(big), "number")
  lu.assertTrue(big == json.decode "18446744073709551616")
  lu.assertEquals(tostring(json.null), "null")
  lu.assertEquals(json.type(json.null), "null")
  lu.assertEquals(json.type(json.decode "{}"), "object")
  lu.assertEquals(json.type(json.decode "[]"), "array")
  lu.assertNil(json.type {})
  lu.assertTrue(json.is_array(json.decode "[1]"))
  lu.assertFalse(json.is_array { 1 })
  lu.assertEquals(#json.decode "[1,2,3]", 3)
end

function M.test_errors_are_values()
  local value, err = json.decode '{"a": [1, 2,]}'
  lu.assertNil(value)
  lu.assertEquals(err.code, "parse")
  lu.assertStrContains(err.msg, "line 1 column 13")
  lu.assertEquals(select(2, json.decode(("["):rep(1025) .. ("]"):rep(1025))).code, "parse")
  lu.assertEquals(select(2, json.decode "").code, "parse")
end

function M.test_misuse_raises()
  lu.assertErrorMsgContains("unknown option 'rwa'", json.decode, "1", { rwa = {} })
  lu.assertErrorMsgContains("unknown option 'pretty'", json.encode, 1, { pretty = true })
  lu.assertErrorMsgContains("option 'utf8'", json.encode, 1, { utf8 = "keep" })
  lu.assertError(json.decode, nil)
end

function M.test_repeated_keys_last_wins_in_the_first_place()
  lu.assertEquals(round '{"a":1,"b":2,"a":3}', '{"a":3,"b":2}')
  lu.assertEquals(round '[{"a":1,"b":2},{"a":1,"b":2,"b":4}]', '[{"a":1,"b":2},{"a":1,"b":4}]')
end

function M.test_order_of_keys()
  local t = json.decode '{"z":1,"y":2,"x":3}'
  t.w = 4
  t.y = nil
  local seen = {}
  for k, v in pairs(t) do seen[#seen + 1] = k .. v end
  lu.assertEquals(seen, { "z1", "x3", "w4" })
  t.y = 5 -- deleted and set again: last
  lu.assertEquals(json.encode(t), '{"z":1,"x":3,"w":4,"y":5}')
  t.z = 9 -- still there: keeps its place
  lu.assertEquals(json.encode(t), '{"z":9,"x":3,"w":4,"y":5}')
  lu.assertEquals(json.keys(t)[4], "y")
  lu.assertEquals(json.encode(t, { sorted = true }), '{"w":4,"x":3,"y":5,"z":9}')
end

function M.test_objects_of_one_shape_do_not_share_changes()
  local list = json.decode '[{"a":1,"b":2},{"a":3,"b":4}]'
  list[1].c = 5
  list[1].a = nil
  lu.assertEquals(json.encode(list), '[{"b":2,"c":5},{"a":3,"b":4}]')
end

function M.test_many_new_and_deleted_keys_stay_small()
  local t = json.object()
  for i = 1, 10000 do
    t["k" .. i] = i
    t["k" .. i - 1] = nil
  end
  lu.assertEquals(json.encode(t), '{"k10000":10000}')
  lu.assertTrue(#getmetatable(t) < 64)
end

function M.test_marks()
  lu.assertEquals(json.encode {}, "{}")
  lu.assertEquals(json.encode(json.array()), "[]")
  lu.assertEquals(json.encode { list = json.array {}, map = {} }, '{"list":[],"map":{}}')
  local t = json.object({ b = 1, a = 2, c = 3 }, { "c", "nothing" })
  lu.assertEquals(json.encode(t), '{"c":3,"a":2,"b":1}')
  lu.assertEquals(json.encode { b = 1, a = { 1, { y = 1, x = 2 } } }, '{"a":[1,{"x":2,"y":1}],"b":1}')
end

local function refused(value, part, opts)
  local ok, err = pcall(json.encode, value, opts)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "badarg")
  lu.assertStrContains(err.msg, part)
end

function M.test_what_json_cannot_say_names_its_path()
  refused({ a = { b = { 1, 0 / 0 } } }, "at .a.b[2]: NaN")
  refused({ 1 / 0 }, "infinity")
  refused({ x = print }, "at .x: a function")
  refused({ 1, nil, 3 }, "holes")
  refused({ 1, 2, x = 3 }, "named members")
  refused({ [2] = 1 }, "keys must be strings")
  refused({ [1.5] = 1 }, "keys must be strings")
  refused("\xff", "not UTF-8", { utf8 = "error" })
  local cycle = {}
  cycle.me = cycle
  refused(cycle, "a cycle")
  lu.assertEquals(json.encode({ 0 / 0, 1 / 0 }, { nonfinite = "null" }), "[null,null]")
end

function M.test_size_is_bounded()
  local t = { "x" }
  for _ = 1, 60 do t = { t, t } end -- 2^60 leaves
  local ok, err = pcall(json.encode, t, { max_bytes = 100000 })
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "toobig")
end

function M.test_indent_is_python_s()
  local value = json.decode '{"a":[1,{"b":[]}],"c":{},"é":"x"}'
  lu.assertEquals(json.encode(value, { indent = 2 }), [[
{
  "a": [
    1,
    {
      "b": []
    }
  ],
  "c": {},
  "é": "x"
}]])
end

function M.test_text_is_always_utf8()
  lu.assertEquals(json.encode "a\xffb\xe2\x82", '"a\u{fffd}b\u{fffd}"')
  lu.assertEquals(json.encode("é😀\127\xff", { ascii = true }), '"\\u00e9\\ud83d\\ude00\\u007f\\ufffd"')
  lu.assertEquals(json.encode "\"\\/\b\f\n\r\t\1", '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001"')
end

function M.test_raw_members()
  local text = '{"logprobs": {"a": [1,\n 2.50, "\\u0041é"]},"x":{"logprobs":null}}'
  local value = json.decode(text, { raw = { "logprobs" } })
  lu.assertEquals(json.type(value.logprobs), "raw")
  lu.assertEquals(value.logprobs:text(), '{"a": [1,\n 2.50, "\\u0041é"]}')
  lu.assertEquals(value.logprobs:decode().a[3], "Aé")
  lu.assertEquals(value.x.logprobs, json.null)
  lu.assertEquals(json.encode(value), '{"logprobs":{"a": [1,  2.50, "\\u0041é"]},"x":{"logprobs":null}}')
  lu.assertNil(json.decode('{"logprobs":[1,]}', { raw = { "logprobs" } }))
end

function M.test_raw_text()
  lu.assertEquals(json.encode { a = json.raw " [1, 2.50] " }, '{"a":[1, 2.50]}')
  lu.assertEquals(json.encode(json.raw " 7 "), "7")
  lu.assertEquals(select(2, json.raw "[1").code, "parse")
end

function M.test_repair()
  local value, repaired = json.decode('["\\ud800","a\nb","\xff","\\\\ud800"]', { repair = true })
  lu.assertTrue(repaired)
  lu.assertEquals(json.encode(value), '["\u{fffd}","a\\nb","\u{fffd}","\\\\ud800"]')
  value, repaired = json.decode("[100000000000000000000000]", { repair = true })
  lu.assertFalse(repaired) -- nothing is lost, so nothing was repaired
  lu.assertEquals(json.encode(value), "[100000000000000000000000]")
  value, repaired = json.decode("[1,", { repair = true })
  lu.assertNil(value)
  lu.assertEquals(repaired.code, "parse")
end

function M.test_arguments()
  lu.assertEquals(json.encode((json.decode_arguments "")), "{}")
  lu.assertEquals(json.encode((json.decode_arguments " \n")), "{}")
  lu.assertEquals(json.decode_arguments('{"code":"a\n\tb"}').code, "a\n\tb")
  lu.assertNil(json.decode_arguments "not json")
end

function M.test_cjson_null_is_understood_and_cjson_loses()
  local cjson = require "cjson"
  lu.assertEquals(json.encode { a = cjson.null }, '{"a":null}')
  lu.assertEquals(cjson.encode(cjson.decode "[]"), "{}") -- why the library does not use it
  lu.assertEquals(json.encode(json.decode "[9007199254740993]"), "[9007199254740993]")
  lu.assertNotEquals(cjson.encode(cjson.decode "[9007199254740993]"), "[9007199254740993]")
end

-- ---------------------------------------------------------------- names known beforehand (private)

local sys = require "agentbox.sys.json"

function M.test_shapes_make_objects_in_order()
  local make = sys.shape("b", "a", "c")
  lu.assertEquals(json.encode(make(1, "x", false)), '{"b":1,"a":"x","c":false}')
  local partial = make(nil, "x")
  lu.assertEquals(json.encode(partial), '{"a":"x"}')
  partial.b = 2
  lu.assertEquals(json.encode(partial), '{"a":"x","b":2}')
  lu.assertEquals(json.encode(make()), "{}")
  lu.assertErrorMsgContains("came twice", sys.shape, "a", "a")
end

function M.test_rows_are_texts()
  local put = sys.row({ "z", 'q"', "t" }, { t = true })
  lu.assertEquals(put(1.5, { 1, "two" }, "[3]"), '{"z":1.5,"q\\"":[1,"two"],"t":[3]}')
  lu.assertEquals(put(nil, json.null, { a = 1 }), '{"q\\"":null,"t":{"a":1}}')
  lu.assertEquals(put(), "{}")
  lu.assertEquals(put("a\xff"), '{"z":"a\u{FFFD}"}')
  local _, problem = pcall(put, print)
  lu.assertEquals(problem.code, "badarg")
  lu.assertEquals(put(2), '{"z":2}') -- a failure leaves nothing behind
  lu.assertEquals(sys.tuple(1, "a", json.null, 0.5), '[1,"a",null,0.5]')
  lu.assertEquals(sys.tuple(), "[]")
end

function M.test_a_member_is_put_behind_the_others()
  lu.assertEquals(sys.member('{"a":1}', "b", 2), '{"a":1,"b":2}')
  lu.assertEquals(sys.member("{}", 'q"', { 1, "x" }), '{"q\\"":[1,"x"]}')
  lu.assertErrorMsgContains("an object expected", sys.member, "[1]", "a", 1)
end

function M.test_an_object_in_the_order_of_a_list()
  local order = { "z", "a", "absent", "m" }
  local object = json.object({ m = 1, a = json.null, z = "x" }, order)
  lu.assertEquals(json.encode(object), '{"z":"x","a":null,"m":1}')
  object.absent = 2 -- what comes later is last, as in any object
  lu.assertEquals(json.encode(object), '{"z":"x","a":null,"m":1,"absent":2}')
  lu.assertEquals(json.encode(json.object({ m = 1, c = 2, b = 3 }, order)), '{"m":1,"b":3,"c":2}')
  lu.assertEquals(json.encode(json.object({ a = 1, b = 2 }, { "b", "b", "a" })), '{"b":2,"a":1}')
  lu.assertErrorMsgContains("must be strings", json.object, { 1, a = 2 }, order)
end

function M.test_a_document_of_many_shapes()
  local parts = {}
  for i = 1, 100 do parts[i] = ('{"k%d":1,"x":{"y%d":[{"a":%d},{"a":2,"k%d":3}]}}'):format(i, i % 7, i, i) end
  local text = "[" .. table.concat(parts, ",") .. "]"
  lu.assertEquals(json.encode(json.decode(text)), text)
  local list = json.decode '[{"a":1},{"a":2},{"a":3}]'
  list[1].b, list[3].c = 1, 1 -- objects of one shape are apart
  lu.assertEquals(json.encode(list), '[{"a":1,"b":1},{"a":2},{"a":3,"c":1}]')
end

function M.test_a_member_as_a_lua_value()
  local doc = json.decode('{"a":null,"b":{"c":[1]},"d":false}', { raw = { "b" } })
  lu.assertEquals({ json.plain(doc.a), json.plain(doc.b).c[1], json.plain(doc.d) }, { [2] = 1, [3] = false })
  lu.assertNil(json.plain(nil))
end

function M.test_what_json_cannot_say_is_not_clean()
  lu.assertEquals(sys.encode_clean { a = "\u{FFFD}" }, '{"a":"\u{FFFD}"}')
  for _, value in ipairs { { "\xff" }, { print }, { 0 / 0 }, { ["\xc3"] = 1 } } do lu.assertNil(sys.encode_clean(value)) end
end

function M.test_a_list_of_texts_is_decoded_where_somebody_looks()
  local list = sys.texts({ '{"a":1,"m":{"x":[]}}', "[2]" }, { raw = { "m" } })
  lu.assertEquals(#list, 2)
  lu.assertEquals(list[1].a, 1)
  lu.assertEquals(json.type(list[1].m), "raw")
  lu.assertNil(list[3])
  lu.assertNil(list.x)
  lu.assertEquals(json.encode { l = list }, '{"l":[{"a":1,"m":{"x":[]}},[2]]}')
  list[1].a = 5
  lu.assertEquals(json.encode(list), '[{"a":5,"m":{"x":[]}},[2]]')
  local seen = 0
  for i, one in ipairs(list) do seen = seen + i * (one.a or one[1]) end
  lu.assertEquals(seen, 9)
  lu.assertEquals(json.encode(sys.texts {}), "[]")
end

function M.test_raw_text_that_is_written_when_it_is_asked_for()
  local rows = sys.rows({ "a", "b" }, { b = true })
  local calls = 0
  local part = sys.later(rows, 1, 2, { "x", "é" }, { "[1]", sys.later(sys.joined, { "2", sys.later(sys.tuple, 3) }, ",\n", "[", "]") })
  local text = '[{"a":"x","b":[1]},{"a":"é","b":[2, [3]]}]'
  lu.assertEquals(json.type(part), "raw")
  lu.assertEquals(json.encode(part), text)
  lu.assertEquals(json.encode({ p = part }, { ascii = true }), '{"p":' .. text:gsub("é", "\\u00e9") .. "}")
  lu.assertEquals(part:text(), (text:gsub(", ", ",\n")), "the text is as the writer made it")
  lu.assertEquals(part:decode()[2].b[2][1], 3)
  lu.assertEquals(json.encode { part, part }, "[" .. text .. "," .. text .. "]")
  lu.assertEquals(sys.list(1, 2, { part, "0" }), "[" .. text .. ",0]")
  lu.assertEquals(sys.later(sys.row { "n" }, nil):text(), "{}")
  lu.assertEquals(sys.joined({ "1", "2" }), "12")
  lu.assertEquals(sys.joined({}, ",", "[", "]"), "[]")
  local bad = sys.later(sys.tuple, print)
  for _ = 1, 2 do
    local ok, problem = pcall(json.encode, bad)
    lu.assertFalse(ok)
    lu.assertStrContains(problem.msg, "a function has no JSON form")
  end
  lu.assertErrorMsgContains("a writer expected", sys.later, function() calls = calls + 1 end)
  lu.assertEquals(calls, 0)
end

function M.test_elements_that_are_written_later_are_decoded_too()
  local list = sys.texts({ sys.later(sys.row { "a" }, 7) }, {})
  lu.assertEquals(json.encode(list), '[{"a":7}]')
  lu.assertEquals(list[1].a, 7)
end

return M

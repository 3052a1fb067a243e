--- Parts of JSON text without values of the rest, and rows written from columns.
local lu = require "luaunit"
local json = require "agentbox.json"
local sys = require "agentbox.sys.json"

local M = {}

local LIST = '[{"p":null,"m":{"role":"a","content":"x\\n\\"y"}}, {"p":12,"m":{"role":"b","calls":[{"]":"}"}]},"z":1.5}]'

function M.test_columns_of_a_list()
  local split = sys.split { "p", "&p", "m.role", "m.content", "&m.content", "m.calls", "z", "none" }
  for _, list in ipairs { LIST, assert(json.raw(LIST)), sys.elements(LIST) } do
    local n, p, p_text, role, content, slice, calls, z, none = split(list)
    lu.assertEquals(n, 2)
    lu.assertEquals({ p[1], p[2], p_text[1], p_text[2] }, { nil, 12, "null", "12" })
    lu.assertEquals(role, { "a", "b" })
    lu.assertEquals({ content[1], content[2], slice[1] }, { 'x\n"y', nil, '"x\\n\\"y"' })
    lu.assertEquals({ calls[1], calls[2] }, { nil, '[{"]":"}"}]' })
    lu.assertEquals({ z[1], z[2] }, { nil, 1.5 })
    lu.assertEquals(none, {})
  end
end

function M.test_a_column_of_strings_holds_nothing_else()
  local split = sys.split { "$v", "&v", "v" }
  local n, strings = split '[{"v":"a\\n"},{"v":{"b":1}},{"v":["c"]},{"v":7},{"v":true},{"v":null},{},{"v":""}]'
  lu.assertEquals({ n, strings[1], strings[8] }, { 8, "a\n", "" })
  for i = 2, 7 do lu.assertNil(strings[i]) end
  lu.assertEquals(sys.pick { "$m.v" } '{"m":{"v":{},"v":"last"}}', "last")
end

function M.test_what_is_no_list_of_objects()
  local split = sys.split { "p" }
  lu.assertEquals({ split "[]" }, { 0, {} })
  for _, text in ipairs { "{}", "[1]", "[{},null]", "7", '"[{}]"' } do lu.assertNil(split(text)) end
  lu.assertNil(split { "{}", "[]" })
  lu.assertNil(split { 7 })
  lu.assertError(split, 7)
  lu.assertError(sys.split, { "a..b" })
end

function M.test_the_last_of_repeated_keys_and_keys_with_escapes()
  local role, content, other = sys.pick { "m.role", "m.content", "o" } '{"m":{"role":"a","content":"b"},"m":{"r\\u006fle":"c"},"o":1,"o":2}'
  lu.assertEquals({ role, content, other }, { "c", nil, 2 })
end

function M.test_scalars_are_what_decode_makes_of_them()
  local pick = sys.pick { "v" }
  for _, text in ipairs { "0", "-0", "7", "-7", "9007199254740993", "9223372036854775807", "1.5", "-1.25e-7", "1E3", "true", "false",
    '""', '"\\u00e9\\ud83d\\ude00\\/"' } do
    local expected, given = json.decode(text), pick('{"v":' .. text .. "}")
    lu.assertEquals({ given, math.type(given) }, { expected, math.type(expected) })
  end
  lu.assertEquals(tostring(pick '{"v":123456789012345678901}'), "123456789012345678901")
  lu.assertNil(pick '{"v":null}')
  lu.assertNil(pick "[]")
end

function M.test_entries_and_elements()
  local keys, texts = sys.entries ' {"b\\u0041":[1, 2],"a":{},"c":"}"} '
  lu.assertEquals({ keys, texts }, { { "bA", "a", "c" }, { "[1, 2]", "{}", '"}"' } })
  lu.assertNil(sys.entries "[]")
  lu.assertEquals(sys.elements '[1,"]",{"a":[]} ]', { "1", '"]"', '{"a":[]}' })
  lu.assertNil(sys.elements "{}")
end

function M.test_rows_from_columns()
  local put = sys.rows({ "a", "b", "c" }, { b = true })
  lu.assertEquals(put(1, 3, { 1, "x", true }, { "[1]", nil, "{}" }, "same"),
    '[{"a":1,"b":[1],"c":"same"},{"a":"x","c":"same"},{"a":true,"b":{},"c":"same"}]')
  lu.assertEquals(put(2, 2, { 1, "x", true }), '[{"a":"x"}]')
  lu.assertEquals({ put(1, 0, {}), put(1, 2) }, { "[]", "[{},{}]" })
end

function M.test_rows_with_objects_inside_and_members_that_stay()
  local put = sys.row({ "id", { "type", '"function"' }, { "f", { "name", { "more", { "x" } } } }, "last" }, { x = true })
  lu.assertEquals(put("a", "b", "[1]", 2), '{"id":"a","type":"function","f":{"name":"b","more":{"x":[1]}},"last":2}')
  lu.assertEquals(put(), '{"type":"function","f":{"more":{}}}')
  lu.assertErrorMsgContains("list of names", sys.row, { { 1, "x" } })
end

local MESSAGES = '[{"m":{"role":"a","c":"x\\n"},"p":null},{"m":{"c":["y"]},"p":1},{"p":2}]'

function M.test_a_sheet_makes_a_column_when_it_is_asked_for()
  local of = sys.sheet { role = "m.role", c = "&m.c", kind = "?m.c", p = "&p", q = "!p", m = "?m" }
  for _, list in ipairs { MESSAGES, assert(json.raw(MESSAGES)) } do
    local sheet = of(list)
    lu.assertNil(rawget(sheet, "c"))
    lu.assertEquals({ sheet.n, sheet.role, sheet.c, sheet.kind }, { 3, { "a" }, { '"x\\n"', '["y"]' }, { "string", "array" } })
    lu.assertEquals({ sheet.p, sheet.q, sheet.m }, { { "null", "1", "2" }, { nil, "1", "2" }, { "object", "object" } })
    lu.assertIs(sheet.c, sheet.c)
    lu.assertNil(sheet.other)
    local own = sys.again(sheet)
    own.c[1] = "changed"
    lu.assertEquals({ own.n, sheet.c[1] }, { 3, '"x\\n"' })
  end
  lu.assertNil(of "[1]")
  lu.assertEquals(of("[]").n, 0)
end

function M.test_a_sheet_keeps_its_texts()
  local list = { '{"a":"' .. ("x"):rep(100) .. '"}', '{"a":"' .. ("y"):rep(100) .. '"}' }
  local sheet = sys.sheet { a = "a" } (list)
  list[1], list[2] = nil, nil
  for _ = 1, 3 do collectgarbage() end
  lu.assertEquals(sheet.a, { ("x"):rep(100), ("y"):rep(100) })
end

function M.test_kinds_of_values()
  lu.assertEquals(sys.sheet { k = "?v" } '[{"v":{}},{"v":[]},{"v":""},{"v":-1},{"v":true},{"v":false},{"v":null},{}]'.k,
    { "object", "array", "string", "number", "boolean", "boolean", "null" })
end

function M.test_cells_are_copied_as_they_stand()
  local sheet = sys.sheet { role = "m.role", c = "&m.c", p = "&p", q = "!p" } (MESSAGES)
  local put = sys.rows { "role", "c", "p", "q" }
  local role, c, p, q = sys.cells(sheet, "role"), sys.cells(sheet, "c"), sys.cells(sheet, "p"), sys.cells(sheet, "q")
  lu.assertEquals(put(1, 4, role, c, p, q), '[{"role":"a","c":"x\\n","p":null},{"c":["y"],"p":1,"q":1},{"p":2,"q":2},{}]')
  local some = sys.cells(sheet, "c", { [2] = "b", [7] = 7 }, { 7, 2, 1, 9 })
  lu.assertEquals(sys.rows({ "c" }, nil, true)(1, 5, some), '[{"c":7},{"c":"b"},{"c":"x\\n"},{"c":null},{"c":null}]')
  lu.assertEquals({ sys.list(1, 3, some), sys.list(2, 1, c), sys.list(1, 2, { "[]", "1" }) }, { '[7,b,"x\\n"]', "[]", "[[],1]" })
  lu.assertErrorMsgContains("a text for each", sys.list, 1, 4, some)
  lu.assertErrorMsgContains("no such column", sys.cells, sheet, "n")
  lu.assertErrorMsgContains("a sheet expected", sys.cells, {}, "c")
end

local NESTED = '[{"l":[{"id":1,"f":{"a":"x"}},{"id":null}]},{"l":[]},{"l":[{"id":2},3]},{},{"l":[{"f":{"a":[]}}]},{"l":"x"}]'

function M.test_lists_of_a_column_are_written_again()
  local cells = sys.cells(sys.sheet { l = "&l" } (NESTED), "l")
  local names, paths = { { "t", "1" }, "id", { "g", { "a" } } }, { "&id", "f.a" }
  lu.assertEquals(sys.recast(names, paths)(cells),
    { '[{"t":1,"id":1,"g":{"a":"x"}},{"t":1,"id":null,"g":{}}]', nil, nil, nil, '[{"t":1,"g":{"a":[]}}]' })
  lu.assertEquals(sys.recast(names, paths, true)(cells)[5], '[{"t":1,"id":null,"g":{"a":[]}}]')
  lu.assertErrorMsgContains("a path for each value", sys.recast, names, { "id" })
end

function M.test_a_sheet_of_the_lists_of_a_column()
  local sheet = sys.sheet { id = "id", a = "f.a" } (sys.cells(sys.sheet { l = "&l" } (NESTED), "l"))
  lu.assertEquals({ sheet.n, sheet.from }, { 3, { 1, 3, 3, 3, 3, 4, 4 } })
  lu.assertEquals({ sheet.id, sheet.a }, { { 1 }, { "x", nil, "[]" } })
end

-- More members than are kept without a buffer of their own, some of them twice, and names that are spelled otherwise.
function M.test_an_object_of_many_members_is_amended()
  local put, members, expected = sys.amend({ "a" }, { "m3", "new" }), {}, { '"a":0' }
  for i = 1, 40 do
    members[i] = ('"m%d":%d'):format(i, i)
    expected[i + 1] = i == 3 and '"m3":[3]' or i == 17 and '"m17":"again"' or members[i]
  end
  members[41], members[42], members[43] = '"m\\u00317":"again"', '"m3":4', '"\\u0061":9'
  expected[42] = '"new":{}'
  lu.assertEquals(put("{" .. table.concat(members, ",") .. "}", "0", "[3]", "{}"), "{" .. table.concat(expected, ",") .. "}")
end

function M.test_a_text_stands_in_raw_text()
  for _, size in ipairs { 0, 1, 57, 58, 59, 63, 64, 65, 127, 128, 200, 500 } do
    local before = '["' .. ("{x[p"):rep(130):sub(1, size)
    for _, behind in ipairs { '"]', ("{y[q"):rep(40) .. '"]' } do
      lu.assertTrue(json.raw(before .. "{p[" .. behind):has "{p[", size)
      lu.assertFalse(json.raw(before .. "{p" .. behind):has "{p[", size)
    end
  end
  lu.assertTrue(json.raw("[]"):has "")
  lu.assertFalse(json.raw("[]"):has "[][]")
end

function M.test_members_of_an_object_are_amended()
  local put = sys.amend({ "a", "b" }, { "c", "d" })
  lu.assertEquals(put('{"x":1,"b":2,"d":[0], "c" : 3}', "1", "2", nil, "4"), '{"a":1,"b":2,"x":1,"d":4,"c":3}')
  lu.assertEquals(put("{}", nil, "2", "3"), '{"b":2,"c":3}')
  lu.assertEquals({ put "{}", put '{"a":1}' }, { "{}", "{}" })
  lu.assertEquals(put '{"x":1,"\\u0064":2,"x":3,"d":4,"q\\"":5}', '{"x":3,"d":4,"q\\"":5}')
  lu.assertErrorMsgContains("an object expected", put, "[]")
  lu.assertErrorMsgContains("string expected", put, "{}", {})
end

-- Laid out is what the encoder makes of the values.
function M.test_text_is_laid_out_as_its_values_are_written()
  local opts = { raw = { "ids", "lp" } }
  for _, text in ipairs {
    "[]", "{}", "1", '"x"', "[[],{}]", ' { "a" : [ 1 , 2 ] , "b" : { "c" : null } } ', '[-0,-7,9223372036854775807,12345678901234567890]',
    "[1.0,1e3,1E-7,0.10,-1.50,1e400,1e-400,-2,-12.5e3]", '["\\n\\t\\"\\\\","\\/","\\u0041\\u00e9\\ud83d\\ude00","é\127","\\u001f\\b"]',
    '{"ids":[1, 2],"a":{"lp":{"x":[ 1 ]}},"lp":3}', "[true,false,null]",
  } do
    for _, ascii in ipairs { false, true } do
      lu.assertEquals(sys.lay_out(text, 2, ascii, opts), json.encode(json.decode(text, opts), { indent = 2, ascii = ascii }))
    end
  end
  -- Strings are copied a block at a time: whatever stands wherever in one.
  for n = 0, 34 do
    for _, piece in ipairs { "", "é", "\127", "\\n", "\\\\", '\\"', "\\/", "\\u0041", "\\\\u0041", "\\\\/", '\\\\\\"', "u/" } do
      local text = ('{"x%s":1,"k":["%s%s%s",{}]}'):format(("k"):rep(n), ("a"):rep(n), piece, ("b"):rep(34 - n))
      lu.assertEquals(sys.lay_out(text, 2), json.encode(json.decode(text), { indent = 2 }))
      lu.assertEquals(sys.lay_out(text, 16, true), json.encode(json.decode(text), { indent = 16, ascii = true }))
    end
  end
  -- What takes its values to say:
  lu.assertNil(sys.lay_out('{"a":1,"a":2}', 2))
  lu.assertNil(sys.lay_out('[{"\\u0061":1}]', 2))
  lu.assertNil(sys.lay_out(("["):rep(200) .. ("]"):rep(200), 2))
  lu.assertErrorMsgContains("1 to 16", sys.lay_out, "[]", 0)
end

function M.test_paths_through_lists()
  local pick = sys.pick { "t.[1]", "t.[2]", "&c.[1].m.[2]", "[1]" }
  lu.assertEquals({ pick '{"t":[1.5,[2],3],"c":[{"m":[0, {"a":1}]},4]}' }, { 1.5, "[2]", '{"a":1}', nil })
  lu.assertEquals({ pick '{"t":{"[1]":1},"c":[],"[1]":5}' }, {})
  lu.assertEquals({ pick '{"t":[1,2],"t":[3]}' }, { 3 })
end

return M

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

return M

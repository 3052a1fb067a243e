local json = require "agentbox.json"
local lu = require "luaunit"
local yaml = require "agentbox.yaml"

local M = {}

local function as_json(text)
  local value, err = yaml.decode(text)
  lu.assertNotNil(value, tostring(err))
  return json.encode(value)
end

function M.test_core_schema()
  lu.assertEquals(as_json "a: no\nb: on\nc: 22:22\nd: 010\ne: 1.10\nf: 0x1F\ng: ~\nh: True\ni: '1'\n",
    '{"a":"no","b":"on","c":"22:22","d":10,"e":1.1,"f":31,"g":null,"h":true,"i":"1"}')
  lu.assertEquals(as_json "", "null")
  lu.assertEquals(as_json "- {}\n- []\n- 99999999999999999999\n", "[{},[],99999999999999999999]")
end

function M.test_keys_keep_their_order_and_are_strings()
  lu.assertEquals(as_json "z: 1\na: 2\n3: x\ntrue: y\n", '{"z":1,"a":2,"3":"x","true":"y"}')
end

function M.test_merge_and_aliases()
  lu.assertEquals(as_json "a: &a {x: 1, y: 1}\nb: &b {y: 2}\nc:\n  z: 0\n  <<: [*b, *a]\n  x: 9\n",
    '{"a":{"x":1,"y":1},"b":{"y":2},"c":{"x":9,"y":2,"z":0}}')
  lu.assertEquals(as_json "'<<': {a: 1}", '{"<<":{"a":1}}')
end

function M.test_json_is_tried_first()
  lu.assertEquals(as_json '{"a": "\\ud83d\\ude00"}', '{"a":"😀"}')
  lu.assertEquals(as_json "{a: 1, b: }", '{"a":1,"b":null}')
end

function M.test_errors_have_line_and_column()
  local value, err = yaml.decode "a: 1\nb:\n  c: 1\n  c: 2\n"
  lu.assertNil(value)
  lu.assertEquals(err.code, "parse")
  lu.assertEquals({ err.line, err.column }, { 4, 3 })
  lu.assertStrContains(err.msg, "repeated key 'c'")
  lu.assertEquals(select(2, yaml.decode(("["):rep(5000))).code, "toobig")
end

local function round(value)
  local text = yaml.encode(value)
  local back, err = yaml.decode(text)
  lu.assertNotNil(back, ("%s in\n%s"):format(err, text))
  lu.assertEquals(json.encode(back), json.encode(value), text)
end

function M.test_encoding_reads_well()
  local value = json.decode [=[{"id":"t1","description":"Fix it.\n  Now.\n","limits":{"memory_mb":512,"cpu":1.5},
    "files":[{"a":[1,[2,3]]},"x",[]],"empty":{},"none":null,"flag":"yes","port":"22:22","n":"1"}]=]
  lu.assertEquals(yaml.encode(value), [[
id: t1
description: |
  Fix it.
    Now.
limits:
  memory_mb: 512
  cpu: 1.5
files:
  - a:
      - 1
      - - 2
        - 3
  - x
  - []
empty: {}
none: null
flag: "yes"
port: "22:22"
"n": "1"
]])
  round(value)
end

function M.test_any_text_comes_back()
  local parts = { "a", " ", "\n", "\t", "-", ":", "#", "'", '"', "|", "é", "\u{2028}", "{", "}", "[", "]", ",", "&", "*",
    "!", "%", "1", "0", ".", "\r", "\u{feff}", "\u{85}", "~", "?", ">", "@", "`", "\\", "<", "=", "\127" }
  local state = 1
  local function pick(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % n + 1
  end
  for _ = 1, 3000 do
    local t = {}
    for i = 1, pick(8) do t[i] = parts[pick(#parts)] end
    local s = table.concat(t)
    round { s, { a = s, [s] = { s } } }
  end
end

function M.test_a_cycle_raises()
  local t = {}
  t.me = t
  lu.assertErrorMsgContains("a cycle", yaml.encode, t)
end

return M

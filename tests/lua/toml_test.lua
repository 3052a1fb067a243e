-- TOML in and out.
local json = require "agentbox.json"
local lu = require "luaunit"
local toml = require "agentbox.toml"

local M = {}

function M.test_decodes()
  local got = assert(toml.decode('a = 1\nf = 0.5\nb.c = true\nd = 2024-02-29\ni = -inf\n[t."x y"]\ns = """\ntwo\nlines"""\n[[l]]\nn = 1\n[[l]]\nn = 0x10\n'))
  lu.assertEquals(json.encode(got), [[{"a":1,"b":{"c":true},"d":"2024-02-29","f":0.5,"i":"-Infinity","l":[{"n":1},{"n":16}],"t":{"x y":{"s":"two\nlines"}}}]])
  lu.assertEquals(json.encode(assert(toml.decode ""), { indent = 0 }), "{}")
end

function M.test_refuses_with_the_place()
  for text, line in pairs { ["a = 1\nb = "] = 2, ["a = 1\na = 2"] = 2, ["[t\n"] = 1, ["a = '\255'"] = 1, ["\n\na = 01"] = 3, ["a = \"\\ud800\""] = 1 } do
    local got, problem = toml.decode(text)
    lu.assertNil(got)
    lu.assertEquals({ problem.code, problem.line }, { "parse", line }, text)
    lu.assertStrContains(problem.msg, "line " .. line)
  end
  lu.assertEquals(select(2, toml.decode(("#"):rep((1 << 20) + 1))).code, "toobig")
  lu.assertEquals(select(2, toml.decode("a = " .. ("["):rep(100000))).code, "parse")
end

function M.test_what_is_written_is_read_back()
  local value = {
    text = 'q"\\\n\t\1\127 é 😀', n = -7, x = 1.5, big = 1e300, yes = true, list = { 1, 2, "x" }, rows = { { a = 1 }, { b = { 2 } } },
    empty = json.array {}, ["odd key.\n"] = 1, sub = { deep = { a = 1, none = json.null }, b = "c" }, void = json.object {},
  }
  local text = toml.encode(value)
  local again = assert(toml.decode(text), text)
  value.sub.deep.none = nil
  lu.assertEquals(json.encode(again, { sorted = true }), json.encode(value, { sorted = true }))
  lu.assertErrorMsgContains("no function", toml.encode, { f = print })
end

return M

local arguments = require "agentbox.schema.arguments"
local fast = require "agentbox.schema.fast"
local json = require "agentbox.json"
local lu = require "luaunit"
local schema = require "agentbox.schema"

local M = {}

local RECORD = {
  name = { "string", required = true }, size = { "integer", default = 3, min = 1 },
  mode = { "string", enum = { "fast", "slow" } },
  inner = { "record", fields = { flag = { "boolean" }, deep = { "list", of = { "string" } } } },
  map = { "map", of = { "number" } }, either = { "string|list" },
}

local function problem(value)
  local got, err = schema.check(value, RECORD, { code = "task", where = "t.json" })
  lu.assertNil(got)
  lu.assertEquals(err.code, "task")
  return err.msg
end

function M.test_defaults_and_nulls()
  local got = schema.check({ name = "x", inner = { flag = json.null } }, RECORD)
  lu.assertEquals(got.size, 3)
  lu.assertNil(got.inner.flag)
end

function M.test_messages_name_file_field_and_cause()
  lu.assertEquals(problem { name = json.null }, "t.json: name: is missing")
  lu.assertStrContains(problem { name = "x", nmae = 1 }, 't.json: nmae: unknown key (did you mean "name"?)')
  lu.assertEquals(problem { name = 7 }, "t.json: name: must be text, is 7")
  lu.assertStrContains(problem { name = "x", inner = { deep = { "a", 4 } } }, "inner.deep[1]: must be text, is 4")
  lu.assertStrContains(problem { name = "x", map = { k = "v" } }, 'map.k: must be a number, is the text "v"')
  lu.assertStrContains(problem { name = "x", size = 0 }, "size: must be at least 1, is 0")
  lu.assertStrContains(problem { name = "x", mode = "fats" }, 'must be one of fast, slow, is the text "fats" (did you mean "fast"?)')
  lu.assertStrContains(problem { name = "x", either = 1 }, "must be text or a list, is 1")
  lu.assertStrContains(problem { name = "x", inner = { 1, 2 } }, "inner: must be a map, is a list")
end

function M.test_numbers_as_text_are_numbers()
  lu.assertEquals(schema.check({ name = "x", size = "7" }, RECORD).size, 7)
  lu.assertStrContains(problem { name = "x", size = "seven" }, "whole number")
end

function M.test_options_raise_at_the_caller()
  local ok, msg = pcall(function() schema.options({ nam = 1 }, RECORD, "f") end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(msg), "f: nam: unknown key")
end

-- Symptom: a wrong option of runner.start was blamed on a line of the library.
function M.test_what_a_lab_calls_raises_at_its_own_line()
  local ab, bad = require "agentbox", { zzz = 1 }
  local functions = {
    ["runner.start"] = ab.runner.start, ["rollout.run"] = ab.rollout.run, ["rollout.start"] = ab.rollout.start,
    ["generate.pipeline"] = ab.generate.pipeline, ["sandbox.create"] = ab.sandbox.create, ["model.open"] = ab.model.open,
    ["tool.define"] = ab.tool.define, ["verify.python"] = ab.verify.python, ["rescore.run"] = ab.rescore.run,
  }
  for name, fn in pairs(functions) do
    local ok, msg = pcall(function() return (fn(bad)) end)
    lu.assertFalse(ok, name)
    lu.assertStrMatches(tostring(msg), "[^:]*schema_test%.lua:%d+: .*zzz: unknown key.*", nil, nil, name)
  end
  local _, msg = pcall(function() return ab.snadbox end)
  lu.assertStrContains(tostring(msg), "agentbox has no part 'snadbox', did you mean 'sandbox'?")
end

local TOOL = {
  type = "object", required = { "path" }, additionalProperties = false,
  properties = {
    path = { type = "string" }, n = { type = "integer" }, x = { type = "number" }, ok = { type = "boolean" },
    kind = { enum = { "a", "b" } }, list = { type = "array", items = { type = "string" } },
  },
}

local function args(text) return arguments.validate(TOOL, assert(json.decode(text))) end

function M.test_arguments_keep_their_types()
  local got = args '{"path":"a","n":3,"ok":true,"x":1.5,"list":["q"]}'
  lu.assertEquals(math.type(got.n), "integer")
  lu.assertIsTrue(got.ok)
  lu.assertEquals(got.list[1], "q")
end

-- Enums of anything that JSON has, in records, in tools and in the schemas of MCP servers.
function M.test_enums_hold_any_values()
  local record = { x = { "any", enum = { true, json.null, 1.5, "yes" } } }
  local got, err = schema.check({ x = "yess" }, record, { code = "task", where = "t" })
  lu.assertEquals({ got, err.msg }, { nil, 't: x: must be one of true, null, 1.5, "yes", is the text "yess" (did you mean "yes"?)' })
  lu.assertEquals(assert(schema.check({ x = true }, record)).x, true)
  local shape = assert(json.decode '{"type":"object","properties":{"x":{"enum":[false,null,2,"a b",[1,2],{"k":[]}]}}}')
  local function call(text) return arguments.validate(shape, assert(json.decode('{"x":' .. text .. "}"))) end
  local _, why = call "true"
  lu.assertEquals(why, 'x: must be one of false, null, 2, "a b", [1,2], {"k":[]}, is true')
  for _, text in ipairs { "[2,1]", "{}", '"a"', "[1,2,3]" } do lu.assertNil((call(text)), text) end
  for _, text in ipairs { "false", "2", '"a b"', "[1,2]", '{"k":[]}' } do lu.assertNotNil((call(text)), text) end
end

function M.test_what_models_misspell_is_coerced()
  local got = args '{"path":"a","n":"3","ok":"false","x":"2.5"}'
  lu.assertEquals(got.n, 3)
  lu.assertIsFalse(got.ok)
  lu.assertEquals(got.x, 2.5)
  lu.assertEquals(math.type(args('{"path":"a","n":3.0}').n), "integer")
  lu.assertNil(args('{"path":"a","n":null}').n)
end

function M.test_argument_errors_name_the_field()
  local function wrong(text)
    local got, why = args(text)
    lu.assertNil(got)
    return why
  end
  lu.assertEquals(wrong "{}", "path: required argument is missing")
  lu.assertEquals(wrong '{"path":5}', "path: must be string, is 5")
  lu.assertEquals(wrong '{"path":null}', "path: must be string, is null")
  lu.assertStrContains(wrong '{"path":"a","pth":1}', 'pth: unknown argument (did you mean "path"?); valid: ')
  lu.assertStrContains(wrong '{"path":"a","kind":"c"}', "kind: must be one of a, b")
  lu.assertStrContains(wrong '{"path":"a","list":["q",1]}', "list[1]: must be string")
  lu.assertStrContains(wrong '{"path":"a","n":1.5}', "n: must be integer")
end

-- What the fast checker passes, it passes as the other one would: the value, or a copy of it.
local ALL = {
  s = { "string" }, t = { "text" }, n = { "number", min = 0, max = 10 }, i = { "integer" }, any = { "any" },
  b = { "boolean", default = true }, list = { "list", of = { "string" } }, map = { "map", of = { "integer" } },
  either = { "string|integer" }, number_first = { "number|string" }, word = { "string", enum = { "x", "y" } },
  inner = { "record", fields = { need = { "string", required = true }, d = { "integer", default = 3 } } },
}

function M.test_the_fast_checker_copies_what_is_right()
  local given = { s = "a", n = 10, i = 2, list = { "q" }, map = { k = 1 }, inner = { need = "x" }, t = json.null, any = print }
  lu.assertEquals(fast.record(given, ALL), {
    s = "a", n = 10, i = 2, b = true, list = { "q" }, map = { k = 1 }, inner = { need = "x", d = 3 }, any = print,
  })
  lu.assertNil(given.b)
  local out = fast.record({ list = {}, map = {}, either = "e", word = "y", b = false }, ALL)
  lu.assertEquals(json.encode(out), '{"b":false,"either":"e","list":[],"map":{},"word":"y"}')
  lu.assertEquals(fast.record(json.decode '{"either":5,"list":["a"]}', ALL), { either = 5, list = { "a" }, b = true })
end

function M.test_the_fast_checker_leaves_the_rest_to_the_other()
  for i, given in ipairs {
    { x = 1 }, { s = 1 }, { t = "a\0" }, { n = -1 }, { n = 11 }, { n = "5" }, { n = 0 / 0 }, { i = 1.0 }, { i = "1" }, { b = 1 },
    { list = { 1 } }, { list = { a = 1 } }, { list = { "a", x = 1 } }, { map = { k = "x" } }, { map = { 1 } }, { either = true },
    { number_first = "5" }, { word = "z" }, { inner = {} }, { inner = { need = "x", other = 1 } }, { inner = 1 }, { 1 },
    setmetatable({}, { __pairs = function() end }), "text",
  } do
    lu.assertNil(fast.record(given, ALL), i)
  end
  lu.assertEquals(schema.check({ n = "5", i = 1.0, number_first = "5" }, ALL), { n = 5, i = 1, number_first = 5, b = true })
end

function M.test_the_fast_checker_takes_nothing_that_the_other_refuses()
  local both = { d = { "string", required = true, default = "x" }, e = { "integer|list", of = { "any" }, enum = { 1, 3 } } }
  for _, given in ipairs { {}, { d = json.null }, { d = "a", e = {} }, { d = "a", e = json.array { 1 } }, { d = "a", e = 2 } } do
    lu.assertNil(fast.record(given, both))
    lu.assertNil(schema.check(given, both))
  end
  lu.assertEquals(schema.check({ d = "a", e = 3 }, both), { d = "a", e = 3 })
end

return M

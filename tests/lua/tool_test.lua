local async = require "agentbox.async"
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lu = require "luaunit"
local set = require "agentbox.tool.set"
local tool = require "agentbox.tool"

local M = {}

local CTX = { workspace = "/workspace" }

local function call(name, arguments, id)
  if type(arguments) == "table" then arguments = json.encode(arguments) end
  return { id = id or "c1", type = "function", ["function"] = { name = name, arguments = arguments or "{}" } }
end

local function define(fields)
  local spec = { api = 1, name = "t", description = "d", run = function() return "ok" end }
  for key, value in pairs(fields) do spec[key] = value end
  return tool.define(spec)
end

local function run(tools, calls, limit_s)
  return set.new(tools):run(CTX, calls, limit_s or 30)
end

local function names(opts) return table.concat(assert(tool.select(opts)):names(), " ") end

-- ---------------------------------------------------------------- definition

function M.test_short_parameters_become_an_ordered_schema()
  local t = define { parameters = {
    { "zeta", "string", "first" }, { "alpha", "number", "second", default = 2 }, { "beta", "boolean", optional = true },
  } }
  lu.assertEquals(json.encode(t.parameters), '{"type":"object","properties":{"zeta":{"type":"string","description":"first"},'
    .. '"alpha":{"type":"number","description":"second","default":2},"beta":{"type":"boolean"}},"required":["zeta"],'
    .. '"additionalProperties":false}')
end

function M.test_a_broken_definition_raises_and_names_the_field()
  local cases = {
    [{ nmae = "x" }] = "nmae: unknown key", [{ name = "a b" }] = "name must be", [{ api = 2 }] = "api 2 is not supported",
    [{ parameters = { { "x", "strnig" } } }] = "the type must be one of", [{ run = "x" }] = "run: must be a function",
    [{ exclusive = true, independent = true }] = "contradict",
  }
  for fields, expected in pairs(cases) do
    local ok, msg = pcall(define, fields)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(msg), expected)
  end
end

function M.test_tool_files()
  local dir = assert(fs.tmpdir "agentbox-tool")
  assert(fs.write(dir .. "/good.lua", 'return require("agentbox.tool").define { api = 1, name = "good", description = "d",'
    .. ' run = function() return "hi" end }'))
  assert(fs.write(dir .. "/syntax.lua", "return ("))
  assert(fs.write(dir .. "/other.lua", "return 7"))
  assert(fs.write(dir .. "/bytecode.lua", string.dump(function() end)))
  lu.assertEquals(assert(tool.load(dir .. "/good.lua")).origin.from, dir .. "/good.lua")
  for name, expected in pairs { ["syntax.lua"] = "syntax.lua:1", ["other.lua"] = "must return", ["none.lua"] = "no such tool file",
    ["bytecode.lua"] = "attempt to load a binary chunk" } do
    local got, problem = tool.load(dir .. "/" .. name)
    lu.assertNil(got)
    lu.assertEquals(problem.code, "config")
    lu.assertStrContains(problem.msg, expected)
  end
  assert(fs.remove(dir, true))
end

-- ---------------------------------------------------------------- selection

function M.test_modes()
  lu.assertEquals(names {}, "list_files read_file write_file edit_file run_command run_tests")
  lu.assertEquals(names { mode = "shell" }, "run_command")
  lu.assertEquals(names { mode = "custom" }, "")
  lu.assertEquals(names { mode = { "run_tests", "read_file" } }, "run_tests read_file")
  lu.assertEquals(names { mode = "custom", builtins = false, custom = { define { name = "mine" } } }, "mine")
  lu.assertEquals(names { builtins = false }, "")
end

function M.test_custom_tools_replace_in_place_and_follow()
  local mine, other = define { name = "read_file" }, define { name = "other" }
  local chosen = assert(tool.select { custom = { other, mine } })
  lu.assertEquals(table.concat(chosen:names(), " "), "list_files read_file write_file edit_file run_command run_tests other")
  lu.assertIs(chosen.by_name.read_file, mine)
end

function M.test_dropping()
  lu.assertEquals(names { drop = { "run_tests", "nothing" } }, "list_files read_file write_file edit_file run_command")
  for _, p in ipairs { 0.3, 0.5 } do
    lu.assertEquals(names { drop_prob = p, seed = 42 }, "list_files run_command run_tests")
  end
  lu.assertEquals(names { drop_prob = 0.5, seed = 0 }, "list_files read_file run_command")
end

function M.test_a_tasks_list_is_exact()
  local mine = define { name = "mine" }
  lu.assertEquals(names { allowed = { "read_file" }, custom = { mine } }, "read_file")
  lu.assertEquals(names { allowed = { "mine", "read_file" }, custom = { mine } }, "mine read_file")
  lu.assertEquals(names { allowed = {} }, "")
  local got, problem = tool.select { allowed = { "raed_file" } }
  lu.assertNil(got)
  lu.assertStrContains(problem.msg, 'unknown tool: raed_file (did you mean "read_file"?)')
end

function M.test_wire_form_of_the_builtins()
  local wire = assert(tool.select {}):wire()
  local first = json.encode(wire[1])
  lu.assertStrContains(first, '{"type":"function","function":{"name":"list_files","description":')
  lu.assertStrContains(first, '"path":{"type":"string","description":')
  for i, required in ipairs { false, "path", "path content", "path old_string new_string", "command", false } do
    local parameters = wire[i]["function"].parameters
    lu.assertIsFalse(parameters.additionalProperties)
    lu.assertEquals(parameters.required and table.concat(parameters.required, " ") or false, required)
  end
  lu.assertNil(assert(tool.select { mode = "custom" }):wire())
end

-- ---------------------------------------------------------------- running

function M.test_calls_that_models_get_wrong()
  local t = define { name = "cmd", parameters = { { "command", "string" }, { "n", "number", default = 1 } } }
  local cases = {
    { call("cmd", "{}"), "ERROR: invalid arguments for cmd: command: required argument is missing" },
    { call("cmd", '"ls"'), "ERROR: invalid arguments for cmd: must be a JSON object" },
    { call("cmd", "[1]"), "ERROR: invalid arguments for cmd: must be a JSON object" },
    { call("shell", '{"command":"ls"}'), "ERROR: unknown tool: shell (available: cmd)" },
    { call("cmd", '{"command":5}'), "ERROR: invalid arguments for cmd: command: must be string, is 5" },
    { call("cmd", '{"command":"a","x":1}'), "ERROR: invalid arguments for cmd: x: unknown argument; valid: command, n" },
    { call("cmd", '{"command":'), "ERROR: invalid arguments for cmd: not valid JSON: " },
  }
  for _, case in ipairs(cases) do
    local result = run({ t }, { case[1] })[1]
    lu.assertStrContains(result.text, case[2])
    lu.assertIsTrue(result.is_error)
    lu.assertIsTrue(result.malformed)
  end
end

function M.test_arguments_reach_the_tool_with_defaults_and_types()
  local seen
  local t = define { parameters = { { "a", "string" }, { "n", "integer", default = 7 }, { "b", "boolean", optional = true } },
    run = function(_, args) seen = args return "ok" end }
  run({ t }, { call("t", '{"a":"line\nnext\ttab","b":true}') })
  lu.assertEquals({ seen.a, seen.n, seen.b }, { "line\nnext\ttab", 7, true })
end

function M.test_three_ways_to_fail_are_kept_apart()
  local results = run({
    define { name = "says", run = function() return nil, "no such thing" end },
    define { name = "raises", run = function() error "boom" end },
    define { name = "returns", run = function() return print end },
    define { name = "dies", run = function() return nil, err.new("sandbox", "pid 1 is gone") end },
  }, { call("says", nil, "1"), call("raises", nil, "2"), call("returns", nil, "3"), call("dies", nil, "4"), call("says", nil, "5") })
  lu.assertEquals(results[1].text, "ERROR: says failed: no such thing")
  lu.assertNil(results[1].traceback)
  lu.assertStrContains(results[2].text, "ERROR: raises failed: ")
  lu.assertStrContains(results[2].traceback, "tool_test.lua")
  lu.assertStrContains(results[3].text, "returned a function, not text")
  lu.assertEquals(results[4].infra.code, "sandbox")
  lu.assertNil(results[5], "nothing runs after the sandbox died")
end

function M.test_a_table_that_is_no_json_is_a_tool_error()
  local cyclic = {}
  cyclic.self = cyclic
  for _, value in ipairs { cyclic, { f = print } } do
    local result = run({ define { run = function() return value end } }, { call "t" })[1]
    lu.assertEquals(result.text, "ERROR: t failed: the tool returned a table, not text")
  end
end

function M.test_a_raised_infrastructure_error_is_one()
  local result = run({ define { run = function() error(err.new("sandbox", "gone")) end } }, { call "t" })[1]
  lu.assertEquals(result.infra.code, "sandbox")
end

function M.test_results_are_text()
  local t = define { parameters = { { "kind", "string" } }, run = function(_, args)
    return ({ number = 5, bool = false, list = { 1, 2 }, bytes = "a\255b" })[args.kind]
  end }
  local function said(kind) return run({ t }, { call("t", { kind = kind }) })[1].text end
  lu.assertEquals(said "number", "5")
  lu.assertEquals(said "bool", "false")
  lu.assertEquals(said "list", "[1,2]")
  lu.assertEquals(said "bytes", "a\u{FFFD}b")
end

function M.test_answers_keep_call_order_and_sandbox_calls_run_one_by_one()
  local log, active, most = {}, 0, 0
  local function body(_, args)
    active = active + 1
    most = math.max(most, active)
    async.yield()
    log[#log + 1] = args.n
    active = active - 1
    return tostring(args.n)
  end
  local plain = define { name = "plain", parameters = { { "n", "integer" } }, run = body }
  local calls = {}
  for i = 1, 5 do calls[i] = call("plain", { n = i }, tostring(i)) end
  local results = run({ plain }, calls)
  for i = 1, 5 do lu.assertEquals(results[i].text, tostring(i)) end
  lu.assertEquals(log, { 1, 2, 3, 4, 5 })
  lu.assertEquals(most, 1)
  active = 0
  local free = define { name = "plain", independent = true, parameters = { { "n", "integer" } }, run = function(_, args)
    active = active + 1
    while active < 5 do async.yield() end -- for ever, if they were not all there at once
    return tostring(args.n)
  end }
  results = run({ free }, calls)
  for i = 1, 5 do lu.assertEquals(results[i].text, tostring(i)) end
end

function M.test_open_once_close_once()
  local log = {}
  local t = define {
    open = function() log[#log + 1] = "open" return { n = 0 } end,
    run = function(_, _, state) state.n = state.n + 1 return tostring(state.n) end,
    close = function(state) log[#log + 1] = "close " .. state.n end,
  }
  local tools = set.new { t }
  local results = tools:run(CTX, { call "t", call "t" }, 30)
  lu.assertEquals({ results[1].text, results[2].text }, { "1", "2" })
  lu.assertEquals(tools:close(), {})
  tools:close()
  lu.assertEquals(log, { "open", "close 2" })
end

function M.test_a_failing_open_is_a_tool_error()
  local t = define { open = function() return nil, "no debugger here" end, run = function() return "x" end }
  lu.assertEquals(run({ t }, { call "t" })[1].text, "ERROR: t failed: no debugger here")
end

-- ---------------------------------------------------------------- what a lab's tool may do wrong

local function defect(fields)
  local result = run({ define(fields) }, { call "t" }, fields.limit_s)[1]
  lu.assertIsTrue(result.is_error)
  lu.assertNil(result.infra)
  return result
end

function M.test_a_loop_without_end_is_stopped()
  lu.assertEquals(defect { cpu_s = 0.2, run = function() while true do end end }.defect, "cpu")
end

function M.test_a_loop_around_pcall_is_stopped()
  lu.assertEquals(defect { cpu_s = 0.2, run = function() while true do pcall(error, "x") end end }.defect, "cpu")
end

function M.test_a_tool_that_waits_for_ever_is_stopped()
  local result = defect { timeout_s = 0.05, run = function() async.sleep(3600) end }
  lu.assertEquals(result.defect, "timeout")
  lu.assertStrContains(result.text, "gave no result within 0.05 s")
end

function M.test_a_memory_hog_fails_at_its_ceiling()
  local result = defect { memory_mb = 16, run = function()
    local t = {}
    while true do t[#t + 1] = ("x"):rep(1000) .. #t end
  end }
  lu.assertEquals(result.defect, "memory")
end

function M.test_a_costly_pattern_ends()
  local result = defect { cpu_s = 1, run = function()
    return tostring((("a"):rep(200000) .. "b"):find(("a*"):rep(40) .. "c"))
  end }
  lu.assertStrContains(result.text, "ERROR: t failed: ")
end

function M.test_other_fibers_go_on_beside_a_runaway()
  local ticks = 0
  local done = false
  async.scope(function(scope)
    scope:spawn(function()
      while not done do ticks = ticks + 1 async.yield() end
    end)
    defect { cpu_s = 0.2, run = function() while true do end end }
    done = true
  end)
  lu.assertTrue(ticks > 2)
end

return M

--- What labs rely on: the names of the Lua surface, and tools, agents and tasks in the forms in which they are documented.
local ab = require "agentbox"
local async = require "agentbox.async"
local err = require "agentbox.err"
local lu = require "luaunit"
local model = require "agentbox.model"
local rollout = require "agentbox.rollout"
local tool = require "agentbox.tool"

local M = {}

local function task(fields)
  local out = { task_id = "t", description = "d", verifier = { type = "command", command = "true" } }
  for key, value in pairs(fields or {}) do out[key] = value end
  return out
end

local function run(turns, opts)
  local all = { task = task(), model = type(turns) == "function" and model.fn(turns) or model.scripted(turns) }
  for key, value in pairs(opts or {}) do all[key] = value end
  return assert(rollout.run(all))
end

local function call(name, arguments) return { name = name, arguments = arguments } end
local function calls(...) return { tool_calls = { ... } } end

-- ---------------------------------------------------------------- names

local SURFACE = {
  agent = "tool_loop", async = "spawn all each race timeout sleep semaphore channel", fs = "read write list stat",
  hash = "sha256", http = "request open sse", json = "decode encode null array object", log = "info warn",
  model = "open scripted replay fn", path = "join", prompt = "build", rand = "new", re = "find match gmatch gsub",
  rollout = "start run", sandbox = "create", secret = "new", task = "new dir load", test = "run agent verifier",
  time = "monotonic now", tool = "define", traj = "text load", verify = "compose pytest command", yaml = "decode encode",
  cli = "main", err = "is infra", export = "convert",
}

local function missing(where, value, names)
  local out = {}
  for name in names:gmatch "%S+" do
    if value[name] == nil then out[#out + 1] = where .. name end
  end
  return out
end

function M.test_every_documented_name_is_there()
  for module, names in pairs(SURFACE) do lu.assertEquals(missing(module .. ".", ab[module], names), {}) end
  local sb <close> = assert(ab.sandbox.create())
  lu.assertEquals(missing("sandbox:", sb, "exec must_exec spawn read write append stat list remove mkdir put get usage close"), {})
  local p <close> = assert(sb:spawn { "cat" })
  lu.assertEquals(missing("process:", p, "write read ask kill wait"), {})
  local ro <close> = assert(rollout.start { task = task(), model = model.scripted { "ok" } })
  lu.assertEquals(missing("rollout:", ro, "step finish"), {})
  ro:step()
  lu.assertEquals(missing("ctx.", ro.ctx, "task sandbox model tools messages budget rand log note inject"), {})
  lu.assertEquals(missing("traj.", ro:finish(),
    "task_id run_id final_status stop_reason scored reward outcome messages metrics metadata calls"), {})
end

function M.test_closing_twice()
  local sb = assert(ab.sandbox.create())
  local p = assert(sb:spawn { "cat" })
  for _ = 1, 2 do
    p:kill()
    p:close()
    sb:close()
  end
end

-- ---------------------------------------------------------------- tasks

function M.test_a_task_in_its_documented_form()
  local t = ab.task.new { task_id = "c-7", description = "...", image = "host", limits = { memory_mb = 1024 }, env = { CC = "clang" },
    files = { ["run.sh"] = { text = "make test", mode = "0755" }, ["in.bin"] = { from = "LICENSE" } },
    hidden = { ["tests/t.c"] = { from = "LICENSE" } }, params = { n = 3 }, data = { answer = 42 },
    artifacts = { "build/*.log" }, verifier = { type = "lua", name = "lab.csv_fix" } }
  lu.assertEquals({ t.files["run.sh"].mode, t.data.answer, t.verifier.name }, { tonumber("755", 8), 42, "lab.csv_fix" })
  lu.assertEquals(t.files["in.bin"].bytes, t.hidden["tests/t.c"].bytes)
  lu.assertStrContains(t.files["in.bin"].bytes, "Apache License")
  local function new(from)
    return pcall(ab.task.new, { task_id = "x", description = "d", verifier = { command = "true" }, files = { a = { from = from } } })
  end
  for _, from in ipairs { "../x", "/etc/passwd", "nowhere" } do lu.assertFalse((new(from))) end
end

-- ---------------------------------------------------------------- tools over a process

local function python(log)
  return tool.define {
    api = 1, name = "python", description = "Send one line to a Python that keeps its state.", exclusive = true,
    parameters = { { "code", "string", "one line" }, { "timeout_s", "number", "seconds to wait", default = 20 } },
    open = function(ctx)
      if log then log[#log + 1] = "open" end
      return ctx.sandbox:spawn { "python3", "-i", "-q" }
    end,
    run = function(_, args, py)
      if args.code == "raise" then error "raised" end
      return py:ask(args.code .. "\nprint('(ok)')\n", { until_text = "(ok)\n", timeout_s = args.timeout_s })
    end,
    close = function(py)
      if log then log[#log + 1] = "close" end
      py:kill()
    end,
  }
end

local function py(code, timeout_s) return calls(call("python", { code = code, timeout_s = timeout_s })) end

local function said(t)
  local out = {}
  for _, message in ipairs(t.messages) do
    if message.role == "tool" then out[#out + 1] = message.content end
  end
  return out
end

function M.test_a_tool_that_keeps_a_process()
  local log = {}
  local t = run({ py "x = 20", py "print(x * 2 + 2)", "ok" }, { custom_tools = { python(log) } })
  lu.assertEquals(said(t), { "(ok)\n", "42\n(ok)\n" })
  lu.assertEquals({ t.final_status, log }, { "success", { "open", "close" } })
end

function M.test_a_program_that_hangs_is_no_failure_of_the_infrastructure()
  local t = run({ py("print('so far', flush=True); import time; time.sleep(1000)", 3), "ok" }, { custom_tools = { python() } })
  lu.assertStrContains(said(t)[1], 'ERROR: python failed: no "(ok)\\n" within 3 s; until then it said:\nso far')
  lu.assertEquals({ t.final_status, t.scored }, { "success", true })
end

function M.test_a_program_that_ends_is_no_failure_of_the_infrastructure()
  local t = run({ py "exit()", py "1", "ok" }, { custom_tools = { python() } })
  lu.assertStrContains(said(t)[1], "the program has ended")
  lu.assertStrContains(said(t)[2], "ERROR: python failed: ")
  lu.assertEquals({ t.final_status, t.scored }, { "success", true })
end

function M.test_a_labs_own_deadline_is_no_failure_of_the_infrastructure()
  local slow = tool.define { api = 1, name = "slow", description = "d", run = function()
    return async.timeout(0.01, function() async.sleep(1000) return "never" end)
  end }
  local t = run({ calls(call("slow", {})), "ok" }, { custom_tools = { slow } })
  lu.assertEquals({ t.final_status, said(t)[1] }, { "success", "ERROR: slow failed: no result within 0.01 s" })
  t = run({ "ok" }, { verifier = function() return async.timeout(0.01, function() async.sleep(1000) return 1 end) end })
  lu.assertEquals({ t.stop_reason, t.failure_class, t.scored }, { "scorer_error", "verifier", false })
end

function M.test_the_state_is_closed_on_every_path()
  local function after(rest, opts)
    local log = {}
    local all = { custom_tools = { python(log) } }
    for key, value in pairs(opts or {}) do all[key] = value end
    local turns = { py "x = 1" }
    for _, turn in ipairs(rest) do turns[#turns + 1] = turn end
    local t = run(turns, all)
    lu.assertEquals(log, { "open", "close" }, t.stop_reason)
    return t.stop_reason
  end
  lu.assertEquals(after { "ok" }, "final_answer")
  lu.assertEquals(after { py "raise", "ok" }, "final_answer")
  lu.assertEquals(after { function() return nil, err.new("model", "503") end }, "model_error")
  lu.assertEquals(after { function() error "a bug" end }, "tool_error")
  lu.assertEquals(after({ "ok" }, { verifier = function() error "a bug" end }), "scorer_error")
  lu.assertEquals(after({ py "x = 2" }, { max_steps = 1 }), "max_turns")
  lu.assertEquals(after({ "never" }, { agent = { after_turn = function() error "a bug" end } }), "tool_error")
  lu.assertEquals(after({ py "import time; time.sleep(1000)" }, { timeout_s = 3 }), "wall_timeout")
end

function M.test_the_state_is_closed_when_the_rollout_is()
  local log, ended = {}, nil
  do
    local ro <close> = assert(rollout.start { task = task(), model = model.scripted { py "x = 1", "ok" }, custom_tools = { python(log) },
      on_end = function(t) ended = t end })
    ro:step()
    lu.assertEquals(log, { "open" })
  end
  lu.assertEquals({ log, ended.stop_reason }, { { "open", "close" }, "user_cancel" })
  lu.assertEquals(run({ "ok" }, { custom_tools = { python(log) } }).final_status, "success")
  lu.assertEquals(#log, 2, "what was never used is never opened")
end

function M.test_a_failing_close_is_in_the_record()
  local bad = tool.define { api = 1, name = "bad", description = "d", open = function() return 1 end, run = function() return "x" end,
    close = function() error "close bug" end }
  local t = run({ calls(call("bad", {})), function() return nil, err.new("model", "503") end }, { custom_tools = { bad } })
  lu.assertStrContains(ab.json.encode(t.line.logs), "close bug")
end

function M.test_exclusive_calls_do_not_overlap()
  local active, most = 0, 0
  local one = tool.define { api = 1, name = "one", description = "d", exclusive = true, run = function()
    active = active + 1
    most = math.max(most, active)
    for _ = 1, 3 do async.yield() end
    active = active - 1
    return "x"
  end }
  local list = {}
  for i = 1, 5 do list[i] = call("one", {}) end
  run({ { tool_calls = list }, "ok" }, { custom_tools = { one } })
  lu.assertEquals(most, 1)
end

-- ---------------------------------------------------------------- agents

function M.test_what_an_agent_has()
  local function draw(seed, id)
    local numbers = {}
    local t = run({ calls(call("run_command", { command = "echo hi" })), "ok" }, { seed = seed, id = id, agent = function(ctx)
      for i = 1, 3 do numbers[i] = ctx.rand:int(1, 1000000) end
      ctx:note("n", { 1, 2 })
      ctx.log.info "an agent was here"
      ctx:inject("user", "be quick")
      while not ctx.budget:over() do
        local response, problem = ctx:ask()
        if not response then return "model_error", problem end
        if not response.message.tool_calls then return "final_answer" end
        ctx:answer(response.message.tool_calls, ctx:run_tools(response.message.tool_calls))
        ctx.budget:end_turn()
      end
      return ctx.budget:over()
    end })
    return numbers, t
  end
  local first, t = draw(7, "a")
  lu.assertEquals((draw(7, "a")), first)
  lu.assertNotEquals((draw(7, "b")), first)
  lu.assertEquals({ t.final_status, #t.messages, t.metrics.steps }, { "success", 6, 1 })
  lu.assertEquals(t.line.notes.n:decode(), { 1, 2 })
  lu.assertStrContains(ab.json.encode(t.line.logs), "an agent was here")
  lu.assertEquals({ t.line.nodes[3].o, t.messages[3].content }, { "injected", "be quick" })
end

-- Waits until fn() holds: the others run meanwhile.
local function until_true(fn)
  while not fn() do async.sleep(0.001) end
end

function M.test_an_agent_that_catches_everything_can_be_stopped()
  local begun, closed = false, false
  local ro = assert(rollout.start { task = task(), model = model.scripted { "ok" }, agent = function()
    local guard <close> = setmetatable({}, { __close = function() closed = true end }) -- luacheck: ignore guard
    begun = true
    while true do pcall(async.sleep, 1000) end
  end })
  local stepping = async.spawn(function() return ro:step(1) end)
  until_true(function() return begun end)
  local t = ro:abort()
  lu.assertEquals({ stepping:join() }, { true, false })
  lu.assertEquals({ t.stop_reason, t.scored, closed }, { "user_cancel", false, true })
end

function M.test_a_rollout_may_be_ended_while_it_is_being_set_up()
  local ro = assert(rollout.start { task = task { setup_commands = { "touch begun; sleep 0.2" } }, model = model.scripted { "ok" },
    agent = function() error "never" end })
  local stepping = async.spawn(function() return ro:step(1) end)
  until_true(function() return ro.booted end)
  local t = ro:abort()
  lu.assertEquals({ stepping:join() }, { true, false })
  lu.assertEquals({ t.stop_reason, ro.sandbox, ro.stage }, { "user_cancel" })
end

return M

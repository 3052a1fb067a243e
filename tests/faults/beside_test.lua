--- What a lab's Lua may do wrong, each thing beside a hundred other rollouts: those end with exactly the right result, and the
--- culprit's own says in its record what it did, with file and line.
local async = require "agentbox.async"
local json = require "agentbox.json"
local lu = require "luaunit"
local model = require "agentbox.model"
local rollout = require "agentbox.rollout"
local tool = require "agentbox.tool"
local verify = require "agentbox.verify"

local M = {}

local OTHERS, AT_ONCE = 100, 12

-- ---------------------------------------------------------------- the others

local function sh(command) return { tool_calls = { { name = "run_command", arguments = { command = command } } } } end

local function task(fields)
  local out = { task_id = "t", description = "d", verifier = { type = "command", command = "true" } }
  for key, value in pairs(fields or {}) do out[key] = value end
  return out
end

-- Every third one gives up, so that a right result is not always the same.
local function other(i)
  local solves = i % 3 ~= 0
  local turns = { sh(("echo $((%d * 2)) > made; cat made"):format(i)), sh(solves and "cp made out" or "true"), "done" }
  return rollout.run {
    task = task { task_id = "other-" .. i, verifier = { type = "command", command = ("test $(cat out) = %d"):format(i * 2) } },
    model = model.scripted(turns), sandbox = { backend = "none" },
  }
end

local function check_other(i, t)
  local solves = i % 3 ~= 0
  lu.assertEquals({ i, t.task_id, t.final_status, t.reward, t.metrics.steps },
    { i, "other-" .. i, solves and "success" or "failed", solves and 1.0 or 0.0, 2 }, tostring(t.error))
  lu.assertEquals(t.messages[4].content, ("exit_code=0\n--- stdout ---\n%d\n"):format(i * 2))
end

-- Runs the culprits at the same time as the others; gives the culprits' trajectories by name.
local function beside(culprits)
  local found = {}
  async.scope(function(scope)
    local names = {}
    for name in pairs(culprits) do names[#names + 1] = name end
    scope:spawn(async.each, names, function(name)
      local all = { task = task(), model = model.scripted { "done" }, sandbox = { backend = "none" }, timeout_s = 200 }
      for key, value in pairs(culprits[name]) do all[key] = value end
      found[name] = assert(rollout.run(all))
    end, { limit = AT_ONCE })
    local numbers = {}
    for i = 1, OTHERS do numbers[i] = i end
    local ended = async.each(numbers, other, { limit = AT_ONCE })
    for i = 1, OTHERS do check_other(i, ended[i]) end
  end)
  return found
end

local function fields_of(t) return { t.final_status, t.scored, t.reward, t.failure_class } end

local function logged(t)
  local texts = {}
  for _, event in ipairs(t.line.logs or {}) do texts[#texts + 1] = json.encode(event) end
  return table.concat(texts, "\n") .. tostring(t.line.error)
end

-- ---------------------------------------------------------------- what goes wrong

local GB = 1 << 30

-- Each with what its record must say. Out of memory has no line of its own: the function's is named.
local WRONGS = {
  loop = { function() while true do end end, "CPU time .-beside_test%.lua:" },
  caught_loop = { function() while true do pcall(error, "x") end end, "CPU time .-beside_test%.lua:" },
  memory = { function() local t = {} while true do t[#t + 1] = ("x"):rep(10000) .. #t end end, "Lua memory" },
  pattern = { function() return tostring((("a"):rep(100000) .. "b"):find(("a*"):rep(30) .. "c")) end,
    "pattern too costly .-beside_test%.lua:" },
  rep = { function() return #("x"):rep(GB) end, "Lua memory" },
  concat = { function()
    local t, text = {}, ("x"):rep(1 << 20)
    for i = 1, 1024 do t[i] = text end
    return #table.concat(t)
  end, "Lua memory" },
  raise = { function() error "lab's bug" end, "beside_test%.lua:%d+: lab's bug" },
  raise_table = { function() error { 1 } end, "table" },
  raise_nil = { function() error() end, "nil" },
  index = { function() local t return t.x end, "beside_test%.lua:%d+: attempt to index" }, -- luacheck: ignore
  deep = { function() local function f() return 1 + f() end return f() end, "Lua memory" },
  close = { function()
    local x <close> = setmetatable({}, { __close = function() error "in close" end }) -- luacheck: ignore
    return "text"
  end, "beside_test%.lua:%d+: in close" },
}

local function culprits(make)
  local out = {}
  for name, wrong in pairs(WRONGS) do
    -- Loops use all of their time; the pattern must come to its own end first.
    out[name] = make(wrong[1], { cpu_s = name:find "loop" and 0.5 or 10, memory_mb = 48 })
  end
  return out
end

-- On a busy machine the matcher may be ended as something that lasts too long; the line is the same.
local LASTS = "cannot be interrupted .-beside_test%.lua:"

-- The function of which Lua memory ran out is named where it is not the library's.
local function says(text, name, by_function)
  local pattern = WRONGS[name][2]
  if by_function and pattern == "Lua memory" then pattern = "Lua memory %(the function at .-beside_test%.lua:%d+%)" end
  lu.assertNotNil(text:find(pattern) or name == "pattern" and text:find(LASTS), ("%s: %s"):format(name, text))
end

-- A huge text within the limit is no crime.
local function big()
  local t, text = {}, ("x"):rep(1 << 20)
  for i = 1, 12 do t[i] = text end
  return #table.concat(t) == 12 << 20 and "fine" or "?"
end

-- ---------------------------------------------------------------- where it goes wrong

-- All kinds run at once, beside the same hundred: the first test that looks waits for all of them.
local KINDS = {}

function KINDS.tool()
  local function using(run, limits)
    return {
      model = model.scripted { { tool_calls = { { name = "lab", arguments = {} } } }, "done" }, tools = "custom",
      custom_tools = { tool.define { api = 1, name = "lab", description = "d", run = run,
        cpu_s = limits.cpu_s, memory_mb = limits.memory_mb } },
    }
  end
  local all = culprits(using)
  all.big = using(big, { cpu_s = 10, memory_mb = 48 })
  return all
end

function KINDS.verifier()
  local all = culprits(function(run, limits)
    return { verifier = { run = run, cpu_s = limits.cpu_s, memory_mb = limits.memory_mb } }
  end)
  all.big = { verifier = { run = function() return big() == "fine" and 1 or 0 end, memory_mb = 48 } }
  all.composed = { verifier = verify.compose { { "a", 1, function() error "lab's bug" end } } }
  return all
end

function KINDS.agent()
  local all = culprits(function(run, limits)
    limits.run = run
    return { agent = limits }
  end)
  all.big = { agent = { run = function() return big() == "fine" and "env_done" or "no" end, memory_mb = 48 } }
  return all
end

for _, hook in ipairs { "before_turn", "after_turn", "on_tool_call" } do
  KINDS[hook] = function()
    return culprits(function(run, limits)
      limits[hook] = run
      return { agent = limits, model = model.scripted { sh "true", "done" } }
    end)
  end
end

function KINDS.model()
  local all = culprits(function(run, limits) return { model = model.fn(run), agent = limits } end)
  all.turn_raises = { model = model.scripted { function() error "in a turn" end } }
  all.number = { model = model.fn(function() return 7 end) }
  return all
end

local ended

local function found(kind)
  if not ended then
    local all = {}
    for one, make in pairs(KINDS) do
      for name, opts in pairs(make()) do all[one .. " " .. name] = opts end
    end
    ended = beside(all)
  end
  local out = {}
  for name in pairs(KINDS[kind]()) do out[name] = ended[kind .. " " .. name] end
  return out
end

function M.test_a_labs_tool()
  local all = found "tool"
  lu.assertEquals(all.big.messages[4].content, "fine")
  for name in pairs(WRONGS) do
    local t = all[name]
    lu.assertEquals(fields_of(t), { "success", true, 1.0, nil }, name .. ": " .. tostring(t.error)) -- the rollout went on
    local run = t.line.tool_runs[1]
    lu.assertIsTrue(run.is_error, name)
    lu.assertStrContains(t.messages[4].content, "ERROR: lab failed: ", false, false, name)
    says(run.error .. tostring(run.traceback), name, true)
    lu.assertTrue(#t.messages[4].content < 500, name)
  end
end

function M.test_a_labs_verifier()
  local all = found "verifier"
  lu.assertEquals(fields_of(all.big), { "success", true, 1.0, nil })
  all.big = nil
  for name, t in pairs(all) do
    lu.assertEquals({ name, t.stop_reason, table.unpack(fields_of(t), 1, 4) }, { name, "scorer_error", "error", false, nil, "verifier" })
    says(logged(t), name == "composed" and "raise" or name, true)
  end
end

function M.test_a_labs_agent()
  local all = found "agent"
  lu.assertEquals(fields_of(all.big), { "success", true, 1.0, nil }, tostring(all.big.error))
  all.big = nil
  for name, t in pairs(all) do
    lu.assertEquals({ name, table.unpack(fields_of(t), 1, 4) }, { name, "error", false, nil, "engine" })
    says(logged(t), name, true)
  end
end

function M.test_a_labs_hooks()
  for _, hook in ipairs { "before_turn", "after_turn", "on_tool_call" } do
    for name, t in pairs(found(hook)) do
      lu.assertEquals({ hook, name, table.unpack(fields_of(t), 1, 4) }, { hook, name, "error", false, nil, "engine" })
      says(logged(t), name)
    end
  end
end

function M.test_a_models_function()
  for name, t in pairs(found "model") do
    lu.assertEquals({ name, t.final_status, t.scored, t.reward }, { name, "error", false, nil })
    lu.assertTrue(t.failure_class == "engine" or t.failure_class == "model_server", name)
    if WRONGS[name] then says(logged(t), name) end
  end
end

return M

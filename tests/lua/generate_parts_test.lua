-- The parts of a task factory alone: reading answers, signatures, stubs, languages, dedup.
local ab = require "agentbox"
local extract = require "agentbox.generate.extract"
local index = require "agentbox.generate.index"
local language = require "agentbox.generate.language"
local lu = require "luaunit"
local regions = require "agentbox.generate.regions"
local workshop = require "agentbox.generate.workshop"

local M = {}

-- ---------------------------------------------------------------- answers

function M.test_text_inside_strings_is_never_changed()
  local code = "x = None\nif True: pass  # {a, ],}\n"
  local broken = '{"files": {"a.py": ' .. ab.json.encode(code) .. ',}, "n": None, "ok": True, // so\n}'
  local found, repaired = extract.object(broken)
  lu.assertEquals(found.files["a.py"], code)
  lu.assertIsTrue(repaired)
  lu.assertEquals({ found.n, found.ok }, { ab.json.null, true })
  lu.assertEquals(extract.object('{"a": "line one\nline two \\d",}').a, "line one\nline two \\d")
end

function M.test_the_object_is_found_among_prose_and_fences()
  lu.assertEquals(extract.object("Set {x} first.\n```json\n{\"a\": 1}\n```", { "a" }).a, 1)
  lu.assertEquals(extract.object('{"b": 1} then {"a": 2}', { "a" }).a, 2)
  for text, why in pairs { ['{"a": "b'] = "ends inside a string", ['{"a": {'] = "ends inside an object", none = "holds no JSON object" } do
    local found, problem = extract.object(text)
    lu.assertNil(found)
    lu.assertEquals(problem, why)
  end
end

function M.test_numbers_and_truth_as_models_write_them()
  lu.assertEquals(extract.number "8/10", 0.8)
  lu.assertEquals(extract.number "3 out of 10", 0.3)
  lu.assertEquals(extract.number "85%", 0.85)
  lu.assertEquals(extract.number "about 0.7", 0.7)
  lu.assertNil(extract.number "none")
  lu.assertIsTrue(extract.boolean "yes")
  lu.assertIsFalse(extract.boolean "false")
  lu.assertIsTrue(extract.boolean(true))
  lu.assertNil(extract.boolean "perhaps")
end

local function refusing(modes)
  local seen = {}
  return ab.model.fn(function(request)
    local mode = request.sampling.response_format and "schema" or request.tools and "tool" or "text"
    seen[#seen + 1] = mode
    if not modes[mode] then
      return nil, ab.err.new("model", "no", { http_status = 400, body = mode == "schema" and "response_format is not supported" or "tools?" })
    end
    if mode == "tool" then return { tool_calls = { { name = "verdict", arguments = '{"score": "9/10"}' } } } end
    return 'Well: {"score": 0.9}'
  end), seen
end

function M.test_a_signature_falls_back_to_what_the_server_takes()
  local sig = ab.generate.signature { name = "verdict", { "score", "number", "0 to 1", min = 0, max = 1 } }
  for _, case in ipairs { { "schema", 1 }, { "tool", 2 }, { "text", 3 } } do
    local model, seen = refusing { [case[1]] = true }
    lu.assertEquals(assert(sig:ask(model, "?")).score, 0.9)
    lu.assertEquals(#seen, case[2])
    lu.assertEquals(assert(sig:ask(model, "?")).score, 0.9)
    lu.assertEquals(#seen, case[2] + 1) -- what it took is remembered
  end
  local answer, problem = sig:ask(ab.model.fn(function() return nil, ab.err.new("model", "down", { http_status = 500 }) end), "?")
  lu.assertNil(answer)
  lu.assertEquals(problem.msg, "down")
end

function M.test_a_signature_names_what_is_missing_or_wrong()
  local sig = ab.generate.signature { { "files", "map", "" }, { "ok", "boolean", "", default = false } }
  lu.assertEquals(sig:read('{"files": "{\\"a\\": \\"b\\"}"}').files.a, "b")
  lu.assertEquals(select(2, sig:read '{"ok": true}').msg, "the answer has no files")
  lu.assertEquals(select(2, sig:read '{"files": 3}').msg, "the answer's files is not a map")
end

-- ---------------------------------------------------------------- stubs

function M.test_python_stubs_keep_what_is_outside_of_bodies()
  local shop <close> = workshop.new()
  local source = [[
import os

LIMIT = 3  # kept


class Box:
    """A box."""

    def __init__(self, size):
        self.size = size

    class Lid:
        def lift(self, by: int = {"a": 1}["a"]) -> list[int]:
            """Lift it."""
            # the trick
            return [by]

    def half(self): return self.size // 2
]]
  local read = assert(shop:ask("read", { ["box.py"] = source })).files["box.py"]
  lu.assertEquals(read.stub, [[
import os

LIMIT = 3  # kept


class Box:
    """A box."""

    def __init__(self, size):
        self.size = size

    class Lid:
        def lift(self, by: int = {"a": 1}["a"]) -> list[int]:
            """Lift it."""
            raise NotImplementedError

    def half(self):
        raise NotImplementedError
]])
  local raising = assert(shop:ask("read", { ["a.py"] = "def f():\n    raise ValueError\ndef g():\n    raise NotImplementedError()\n" }))
  lu.assertIsFalse(raising.files["a.py"].functions[1].stub)
  lu.assertIsTrue(raising.files["a.py"].functions[2].stub)
end

function M.test_source_that_brings_the_interpreter_down_is_its_own_fault()
  local shop <close> = workshop.new()
  lu.assertStrContains(assert(shop:ask("read", { ["a.py"] = ("("):rep(100000) })).files["a.py"].error, "line")
  lu.assertStrContains(assert(shop:ask("read", { ["a.py"] = "def (" })).files["a.py"].error, "invalid syntax")
  lu.assertEquals(assert(shop:ask("read", { ["a.py"] = "def f(): pass" })).files["a.py"].defs, { "f" })
end

function M.test_marked_regions()
  local text = "int f(void)\n{\n    // BEGIN SOLUTION stub: return 0;\n    return 42;\n    // END SOLUTION\n}\n"
  lu.assertEquals(regions.strip("f.c", text, "abort();"), "int f(void)\n{\n    return 0;\n}\n")
  lu.assertEquals(regions.unmarked(text), "int f(void)\n{\n    return 42;\n}\n")
  lu.assertEquals(regions.strip("f.sh", "# BEGIN SOLUTION\necho 1\n# END SOLUTION\n", "exit 1"), "exit 1\n")
  lu.assertStrContains(select(2, regions.strip("f.c", "// BEGIN SOLUTION\n", "x")), "END SOLUTION is missing")
  lu.assertStrContains(select(2, regions.strip("f.c", "// END SOLUTION\n", "x")), "without a beginning")
end

function M.test_a_file_is_a_test_by_its_name_not_by_a_part_of_it()
  local python = assert(language.find "python")
  for path, is in pairs { ["tests/a.py"] = true, ["test_a.py"] = true, ["src/a_test.py"] = true, ["conftest.py"] = true,
    ["latest.py"] = false, ["contest/x.py"] = false, ["src/attest.py"] = false } do
    lu.assertEquals({ path, python.is_test(path) }, { path, is })
  end
  lu.assertStrContains(select(2, language.find "pyton"), 'did you mean "python"')
end

-- ---------------------------------------------------------------- duplicates

local function candidate(files)
  local out = {}
  for path, text in pairs(files) do out[path] = { bytes = text, mode = 420 } end
  return { task = { task_id = files.id or "t", files = out }, language = assert(language.find "python") }
end

function M.test_signature_and_likeness()
  lu.assertEquals(index.signature({ "g" }, { ["test_b.py"] = "assert g()\n" }), "c94d32110526cfa95ab0f8d7") -- AgentBox's vector
  local known = {}
  local found = index.new(0.85, function(name) return known[name] end)
  local body = ("def %s(x):\n    raise NotImplementedError\n")
  local one = candidate { ["a.py"] = body:format "alpha", ["test_a.py"] = "from a import alpha\n\ndef test():\n    assert alpha(1) == 2\n" }
  found:add(one)
  known.t = one.task
  lu.assertEquals(found:find(one), "t")
  local near = candidate { ["a.py"] = body:format "alpha", ["test_a.py"] = "from a import alpha\n\ndef test():\n    assert alpha(1) == 3\n" }
  local same, likeness = found:find(near)
  lu.assertEquals(same, "t")
  lu.assertTrue(likeness > 0.85 and likeness < 1)
  local other = candidate { ["z.py"] = "class Queue:\n    pass\n", ["test_z.py"] = "from z import Queue\n\ndef test_it():\n    q = Queue()\n    q.push(3)\n    assert q.pop() == 3\n" }
  lu.assertNil(found:find(other))
  known.t = nil -- its folder was removed
  lu.assertNil(found:find(one))
end

-- ---------------------------------------------------------------- the judge

local function judged(answers, conf)
  local dir = assert(ab.fs.tmpdir "agentbox-generate")
  local _ <close> = setmetatable({}, { __close = function() ab.fs.remove(dir, true) end })
  local example, prompts = language.find("shell").example, {}
  local teacher = ab.model.fn(function()
    return ab.json.encode { task_id = "t", description = example.description, solution_files = example.solution_files,
      test_files = example.test_files }
  end)
  conf.model = ab.model.fn(function(request)
    prompts[#prompts + 1] = request.messages[2].content
    return answers[#prompts]
  end)
  local factory = ab.generate.pipeline { model = teacher, language = "shell", judge = conf,
    stages = ab.generate.two_stage():remove "sandbox" }
  local run <close> = assert(factory:start { target = 1, max_rounds = 1, concurrency = 1, out = dir .. "/tasks" })
  local accepted = run.results:take()
  return accepted and accepted[2].judge, ab.generate.rejects(dir .. "/tasks")[1], prompts
end

function M.test_the_judge_sees_the_solution_and_the_majority_decides()
  local yes = '{"accept": true, "score": "8/10", "reasons": ["clear"]}'
  local no = '{"accept": false, "score": 0.2, "reasons": ["dull"]}'
  local verdict, _, prompts = judged({ yes, no, yes }, { votes = 3 })
  lu.assertEquals({ verdict.votes, verdict.agreement }, { 3, 2 / 3 })
  lu.assertAlmostEquals(verdict.score, 0.6, 1e-9)
  lu.assertEquals(verdict.reasons, { "clear", "dull", "clear" })
  lu.assertStrContains(prompts[1], "SOLUTION, not given to the agent: add.sh")
  lu.assertStrContains(prompts[1], "echo $(($1 + $2))")
end

function M.test_what_the_judge_objects_to_is_the_reason()
  for answer, reason in pairs {
    ['{"accept": false, "score": 0.9}'] = "the judge rejects it",
    ['{"accept": true, "score": "3 out of 10"}'] = "score 0.30 is below 0.65",
    ['{"accept": true, "score": 1, "starter_is_near_solution": "yes"}'] = "the starter is nearly the solution",
    ['{"accept": "yes", "score": 1, "description_leaks_fix": true}'] = "the description gives the solution away",
    ["I like it."] = "no verdict could be read: the answer holds no JSON object",
  } do
    local accepted, reject = judged({ answer }, {})
    lu.assertIsFalse(accepted)
    lu.assertEquals({ reject.stage, reject.reason }, { "judge", reason })
  end
  lu.assertEquals(judged({ '{"accept": true, "score": 0}' }, { min_score = 0 }).score, 0)
end

-- ---------------------------------------------------------------- languages

-- Each language's own example goes the whole way, where its programs are.
for _, name in ipairs(language.NAMES) do
  M["test_example_of_" .. name] = function()
    local lang = assert(language.find(name))
    local sb <close> = assert(ab.sandbox.create {})
    for _, program in ipairs(name == "go" and { "go" } or lang.programs) do
      if assert(sb:exec("command -v " .. program)).exit_code ~= 0 then lu.skip(program .. " is not in the sandbox") end
    end
    local dir = assert(ab.fs.tmpdir "agentbox-generate")
    local _ <close> = setmetatable({}, { __close = function() ab.fs.remove(dir, true) end })
    local example = lang.example
    local model = ab.model.fn(function()
      return ab.json.encode { task_id = example.task_id, description = example.description, solution_files = example.solution_files,
        test_files = example.test_files }
    end)
    local factory = ab.generate.pipeline { model = model, language = lang, min_asserts = 1, mutants = 1, repeats = 2,
      sandbox = { limits = { memory_mb = 1024 } } }
    local run <close> = assert(factory:start { target = 1, max_rounds = 1, concurrency = 1, out = dir .. "/tasks" })
    local accepted = run.results:take()
    local reject = ab.generate.rejects(dir .. "/tasks")[1]
    lu.assertNotIsFalse(accepted, reject and reject.reason)
    lu.assertEquals(accepted[2].sandbox.mutation.score, 1)
  end
end

return M

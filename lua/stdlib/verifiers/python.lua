--- verifiers/python.lua: a grader in Python that exists already, run in a sandbox beside the agent's work.
---
---     ab.verify.python { file = "graders/units.py", image = "python:3.12", timeout_s = 60 }
---
--- The file has a function `grade` (or the one that `entry` names). It is called with those of these that it has parameters
--- for: `workspace`, `task`, `params`, `messages`, `answer` (the last text), `data`; the names of other stacks too: `prompt(s)`
--- and `completion(s)` (lists of one, as TRL's reward functions get them), `solution_str`, `ground_truth`, `data_source`,
--- `extra_info` (verl); and any member of the task's `data`. It returns a number, a boolean, a dict of numbers, a list of one, or one
--- of these and a text. `None`, or an exception that it raises, leaves the work unscored.
---
--- Neither the grader nor what it says touches the workspace: its source comes over stdin, and its result goes out over a
--- descriptor that only it has, with a word that the workspace cannot know.
local command = require "agentbox.verifiers.command"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local rand = require "agentbox.sys.rand"
local sandbox = require "agentbox.sandbox"
local schema = require "agentbox.schema"

local M = { MAX_SOURCE = 4 << 20 }

M.OPTIONS = {
  file = { "string" }, source = { "string" },              -- one of the two
  with = { "list", of = { "string" } },                    -- further files, which it imports
  entry = { "string" }, image = { "string" }, python = { "string", default = "python3" },
  timeout_s = { "number", default = 60, min = 0 }, pass = { "number" },
  on_error = { "string", enum = { "unscored", "fail" }, default = "unscored" },
}

local HARNESS = [==[
import sys, os, json
cfg = json.load(sys.stdin)
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.stdin.close()
cfg["workspace"] = os.getcwd()

def say(**what):
    out.write(cfg["word"] + json.dumps(what) + "\n")
    out.flush()

def known(cfg):
    data = cfg.get("data")
    data = data if isinstance(data, dict) else {"data": data}
    task, messages = cfg["task"], cfg["messages"]
    first = next((i for i, m in enumerate(messages) if m.get("role") == "assistant"), len(messages))
    texts = [m.get("content") for m in messages if m.get("role") == "assistant" and isinstance(m.get("content"), str)]
    answer = texts[-1] if texts else ""
    names = dict(data)
    columns = {name: [value] for name, value in data.items()}
    names.update(workspace=cfg["workspace"], task=task, data=cfg.get("data"), params=cfg.get("params"), messages=messages,
                 prompt=messages[:first], completion=messages[first:], solution_str=answer,
                 data_source=data.get("data_source", task["task_id"]), extra_info=data.get("extra_info", data),
                 ground_truth=data.get("ground_truth", data.get("answer")))
    names.setdefault("answer", answer)
    names.setdefault("info", data)
    columns.update(prompts=[messages[:first]], completions=[messages[first:]])
    return names, columns

def plain(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, dict):
        return {str(name): float(plain(one)) for name, one in value.items() if one is not None and not isinstance(one, str)}
    if hasattr(value, "item") and not isinstance(value, (int, float)):
        value = value.item()
    value = float(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("the number %s is not finite" % value)
    return value

def call(fn):
    import inspect
    names, columns = known(cfg)
    wanted = inspect.signature(fn).parameters
    given, spread = dict(names), False
    if "completions" in wanted or "prompts" in wanted:
        given = columns
    chosen = {}
    for name, parameter in wanted.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            spread = True
        elif name in given:
            chosen[name] = given[name]
        elif name in names:
            chosen[name] = names[name]
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            raise TypeError("%s() wants %s, which is neither known nor in the task's data" % (fn.__name__, name))
    if spread:
        chosen.update({name: value for name, value in given.items() if name not in chosen})
    value = fn(**chosen)
    if inspect.iscoroutine(value):
        import asyncio
        value = asyncio.run(value)
    return value

def main():
    import traceback, types
    try:
        for name, text in cfg["modules"].items():
            module = types.ModuleType(name)
            sys.modules[name] = module
            exec(compile(text, name + ".py", "exec"), module.__dict__)
        grader = types.ModuleType("grader")
        grader.__file__ = cfg["name"]
        sys.modules["grader"] = grader
        exec(compile(cfg["source"], cfg["name"], "exec"), grader.__dict__)
        entries = [cfg["entry"]] if cfg.get("entry") else ["grade", "reward", "score", "evaluate", "compute_score", "reward_fn"]
        fn = next((getattr(grader, name) for name in entries if callable(getattr(grader, name, None))), None)
        if fn is None:
            return say(error="%s has no function %s" % (cfg["name"], " or ".join(entries)))
        value, text = call(fn), None
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, tuple) and len(value) == 2:
            value, text = value
        value = plain(value)
        if value is None:
            return say(error="the grader returned None" + (": " + str(text) if text else ""))
        say(value=value, text=None if text is None else str(text))
    except BaseException as e:
        say(error="".join(traceback.format_exception_only(type(e), e)).strip(), traceback=traceback.format_exc()[-8000:])

main()
out.close()
]==]

-- ---------------------------------------------------------------- where it runs

-- A sandbox of another image with the agent's workspace in it; closed with the evidence.
local function elsewhere(ev, image)
  local spec = {}
  for key, value in pairs(ev:sandbox_spec()) do spec[key] = value end
  spec.image, spec.name, spec.layers = image, nil, nil
  local sb, problem = ev:keep(sandbox.create(spec))
  if not sb then return nil, problem end
  local ok
  ok, problem = sandbox.copy_tree(ev.sandbox, ev.workspace, sb, ev.workspace)
  if not ok then return nil, problem end
  return sb
end

local function config_of(ev, opts, word)
  local modules = json.object {}
  for name, source in pairs(opts.modules or {}) do modules[name] = source end
  return json.encode {
    word = word, source = opts.code, name = opts.name, entry = opts.entry, modules = modules,
    task = { task_id = ev.task.task_id, description = ev.task.description, metadata = ev.task.metadata or json.object {} },
    data = ev.data, params = ev.params, messages = json.array(table.move(ev.traj.messages, 1, #ev.traj.messages, 1, {})),
  }
end

-- The last line that has the word; what it says.
local function result_in(stdout, word)
  local said
  for line in stdout:gmatch "[^\n]+" do
    if line:sub(1, #word) == word then said = json.decode(line:sub(#word + 1)) end
  end
  return json.is_object(said) and said or nil
end

-- ---------------------------------------------------------------- the verdict

local function ended_without(out, opts, facts)
  if out.exit_code == 127 or out.exit_code == 126 then
    return nil, err.new("verifier", ("%s cannot be run in the grader's sandbox: %s"):format(opts.python, facts.stderr:sub(1, 300)))
  end
  facts.success = false
  local why = out.timed_out and ("no result within %g s"):format(opts.timeout_s) or "the grader ended without a result"
  return false, why, facts
end

--- Runs the grader.
---@async
---@param ev agentbox.Evidence
---@param opts table
---@return number|boolean|table|nil value
---@return string|agentbox.Err text_or_err
---@return table? facts
function M.judge(ev, opts)
  local sb, problem = ev.sandbox, nil
  if opts.image then sb, problem = elsewhere(ev, opts.image) end
  if not sb then return nil, problem end
  local word = rand.uuid4() .. " "
  local out
  out, problem = sb:exec({ opts.python, "-I", "-c", HARNESS }, {
    stdin = config_of(ev, opts, word), timeout_s = opts.timeout_s, cwd = ev.workspace, max_output_bytes = command.MAX_OUTPUT,
  })
  if not out then return nil, problem end
  local facts = command.facts(out, ("%s %s"):format(opts.python, opts.name))
  local said = not out.timed_out and result_in(out.stdout, word) or nil
  facts.stdout = ""
  if not said then return ended_without(out, opts, facts) end
  if said.error then
    if opts.on_error == "fail" then
      facts.success = false
      return false, said.error, facts
    end
    return nil, err.new("verifier", ("the grader %s: %s"):format(opts.name, said.error), { traceback = said.traceback })
  end
  local value = said.value
  if type(value) == "table" and value.reward == nil and type(value.score) == "number" then value.reward = value.score end
  if type(value) == "number" and opts.pass then facts.success = value >= opts.pass end
  return value, said.text, facts
end

local function module_name(path) return path:match("[^/]*$"):gsub("%.py$", "") end

-- Reads the sources that the options name; `read(name)` gives a file.
local function with_sources(opts, read)
  if (opts.file == nil) == (opts.source == nil) then return nil, "needs exactly one of file and source" end
  local problem
  opts.name = opts.file or "grader.py"
  opts.code = opts.source
  if opts.file then opts.code, problem = read(opts.file) end
  if not opts.code then return nil, problem end
  opts.modules = {}
  for _, path in ipairs(opts.with or {}) do
    opts.modules[module_name(path)], problem = read(path)
    if problem then return nil, problem end
  end
  return opts
end

--- The checked options with the sources, read now; raises on a mistake.
---@async
---@param given table
---@param level integer
---@return table opts
function M.options(given, level)
  local opts, problem = with_sources(schema.options(given, M.OPTIONS, "verify.python", level), function(path)
    local text, bad = fs.read(path, M.MAX_SOURCE)
    return text, bad and ("%s: %s"):format(path, bad.msg)
  end)
  if not opts then error("verify.python: " .. problem, level + 1) end
  return opts
end

--- What a task's params say, checked, with the sources.
---@param params any
---@param task agentbox.Task
---@return table? opts
---@return agentbox.Err? err
function M.read(params, task)
  local opts, problem = schema.check(params or {}, M.OPTIONS, { path = "verifier.params" })
  if not opts then return nil, err.new("task", problem.msg) end
  local fine, wrong = with_sources(opts, function(path)
    local file = task.hidden[path]
    if file then return file.bytes end
    return nil, path .. ": the task has no such hidden file"
  end)
  if not fine then return nil, err.new("task", "verifier.params: " .. wrong) end
  return fine
end

--- As a task names it: `{ "type": "python", "params": { "file": "grade.py" } }`; the file is one of the task's hidden ones.
---@async
---@param ev agentbox.Evidence
---@return number|boolean|table|nil
---@return string|agentbox.Err
---@return table?
function M.run(ev)
  local opts, problem = M.read(ev.params, ev.task)
  if not opts then return nil, problem end
  return M.judge(ev, opts)
end

return M

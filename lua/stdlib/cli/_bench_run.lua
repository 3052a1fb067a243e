--- `agentbox bench run`.
local M = {}

local out = require "agentbox.cli._out"

local function usage(msg, hint) return nil, { code = "usage", msg = "bench run: " .. msg, hint = hint } end

local LEAST = { concurrency = 1, jobs = 1, n = 1, limit = 1, attempts = 1, max_errors = 0, max_creating = 1, max_commands = 1 }

local function check_numbers(args)
  for name, least in pairs(LEAST) do
    if args[name] and args[name] < least then
      return usage(("--%s must be at least %g, not %g"):format((name:gsub("_", "-")), least, args[name]))
    end
  end
  local rate = args.min_success_rate
  if rate and not (rate >= 0 and rate <= 1) then return usage(("--min-success-rate must be between 0 and 1, not %g"):format(rate)) end
  return true
end

-- ---------------------------------------------------------------- students

local function of_config(config)
  local list, err = config:get "students"
  if err then return nil, err end
  return list or {}
end

local function entries_of(args, config)
  local students = require "agentbox.suite.students"
  if args.mock then return { { id = args.model_id or "mock", model = "mock" } } end
  local list = {}
  if args.models_file then
    local err
    list, err = students.read_file(args.models_file)
    if not list then return nil, err end
  end
  for _, text in ipairs(args.student or {}) do
    local entry, err = students.parse(text)
    if not entry then return nil, err end
    list[#list + 1] = entry
  end
  if args.model then list[#list + 1] = { id = args.model_id, model = args.model, base_url = config:value "model.base_url" } end
  if #list > 0 then return list end
  return of_config(config)
end

local function students_of(args, config)
  local entries, err = entries_of(args, config)
  if not entries then return nil, err end
  if #entries == 0 then
    return usage("no models: give --student, --models-file, --model or --mock, or `students` in agentbox.yaml")
  end
  local key = config:value "model.api_key"
  local thinking = args.disable_thinking and { chat_template_kwargs = { enable_thinking = false } } or nil
  return require "agentbox.suite.students".open(entries, { api_key = key ~= "" and key or nil, extra_body = thinking })
end

-- Asks every server at once; all that do not answer are told.
local function probe(students)
  local async, probing = require "agentbox.async", require "agentbox.probe"
  local fibers, failed = {}, 0
  for i, student in ipairs(students) do
    if student.probe then
      fibers[i] = async.spawn(function()
        local results = probing.run(student.probe)
        student.probe:close()
        return results
      end)
    end
  end
  for i, student in ipairs(students) do
    local ok, results = true, {}
    if fibers[i] then ok, results = fibers[i]:join() end
    if not ok then return nil, results end
    for _, result in ipairs(results) do
      if not result.ok then
        failed = failed + 1
        io.stderr:write(("agentbox: bench run: %s: %s\n"):format(out.line(student.id), (probing.text(result):gsub("^%s+", ""))))
        break
      end
    end
  end
  if failed == 0 then return true end
  return nil, { code = "model", msg = ("bench run: %d of %d servers did not answer the probe; nothing was run"):format(failed, #students),
    hint = "Take them out, mend them, or run with --no-probe." }
end

-- ---------------------------------------------------------------- resuming

-- What a resumed run does without being told again. Never a key, nor an address that may hold one.
local REMEMBERED = { "models_file", "model", "model_id", "base_url", "mock", "disable_thinking", "concurrency", "jobs", "n", "seed",
  "limit", "attempts", "max_errors", "image", "backend", "network", "max_creating", "max_commands", "no_save_trajectories" }

local function secretive(text) return text:find "://[^/]*@" ~= nil end

local function remembered(args)
  local keep = require "agentbox.json".object {}
  for _, name in ipairs(REMEMBERED) do
    local value = args[name]
    if type(value) ~= "string" or not secretive(value) then keep[name] = value end
  end
  for _, name in ipairs { "student", "task" } do
    local list, fine = args[name] or {}, true
    for _, text in ipairs(list) do fine = fine and not secretive(text) end
    if #list > 0 and fine then keep[name] = require "agentbox.json".array(table.move(list, 1, #list, 1, {})) end
  end
  return keep
end

local STUDENTS = { "student", "models_file", "model", "mock" }

local function recall(args)
  local doc, err = require "agentbox.suite.result".read(args.out)
  if not doc then return nil, err end
  local earlier, given = type(doc.args) == "table" and doc.args or {}, false
  for _, name in ipairs(STUDENTS) do
    local value = args[name]
    given = given or value ~= nil and not (type(value) == "table" and #value == 0)
  end
  local skip = given and { student = true, models_file = true, model = true, model_id = true, base_url = true, mock = true } or {}
  for name, value in pairs(earlier) do
    local now = args[name]
    if not skip[name] and (now == nil or type(now) == "table" and #now == 0) then args[name] = value end
  end
  args.suite = args.suite or args.out .. "/suite_snapshot"
  return true
end

-- ---------------------------------------------------------------- running

local function prices_of(args, suite)
  if args.prices then return require "agentbox.cli._traj_stats".read_prices(args.prices) end
  local own = require "agentbox.suite.manifest".own(suite.manifest).prices
  if own then return own end
  return require "agentbox.cli._traj_stats".read_prices(nil)
end

local TOLD = { quarantine = true, quota = true, bad_task = true }

local function on_event(student, kind, fields)
  if not TOLD[kind] then return end
  io.stderr:write(("agentbox: bench run: %s: %s: %s\n"):format(out.line(student), (kind:gsub("_", " ")), out.line(tostring(fields.msg or ""))))
end

local function options_of(args, suite, students)
  local prices, err = prices_of(args, suite)
  if err then return nil, err end
  return {
    suite = suite, out = args.out, students = students, n = args.n, concurrency = args.concurrency, jobs = args.jobs, seed = args.seed,
    limit = args.limit, tasks = args.task and #args.task > 0 and args.task or nil, strict = args.strict, attempts = args.attempts,
    max_errors = args.max_errors, resume = args.resume or nil, retry_errors = args.retry_errors,
    save_trajectories = not args.no_save_trajectories, prices = prices, args = remembered(args), on_event = on_event,
    overrides = { image = args.image, backend = args.backend, network = args.network and "full" or nil },
    limits = { creating = args.max_creating, commands = args.max_commands },
    tags = { agentbox = require "agentbox.sys.os".version },
  }
end

local function on_signals(run, state)
  local async, os_ = require "agentbox.async", require "agentbox.sys.os"
  return { async.spawn(function()
    while os_.wait_signal "INT" do
      state.interrupted = (state.interrupted or 0) + 1
      if state.interrupted == 1 then
        io.stderr:write(("agentbox: bench run: interrupted: %d rollouts are ending; Ctrl-C again stops them\n"):format(run:running()))
        run:drain "interrupted"
      else
        run:stop "interrupted"
      end
    end
  end), async.spawn(function()
    while os_.wait_signal "TERM" do
      state.interrupted = 2
      run:stop "interrupted"
    end
  end) }
end

local EVERY_S = 30

local function watch(run)
  local async = require "agentbox.async"
  return async.spawn(function()
    while true do
      async.sleep(EVERY_S)
      for id, one in pairs(run.runs) do
        local stats = one:stats()
        io.stderr:write(("agentbox: %s: %d/%d ended, %d running, solved %d, unscored %d\n"):format(out.line(id), stats.numbers.rollouts,
          one.opts.total, stats.running, stats.numbers.solved, stats.numbers.unscored))
      end
    end
  end)
end

local function status_of(args, report, state)
  if state.interrupted then return 130 end
  if not report.valid then return 3 end
  local best = report.leaderboard[1]
  if args.min_success_rate and best.success_rate < args.min_success_rate then
    io.stderr:write(("agentbox: bench run: the best model's success rate is %.4g, below %.4g\n"):format(best.success_rate, args.min_success_rate))
    return 1
  end
  return 0
end

local function tell(args, report, status)
  if args.json then
    io.stdout:write(require "agentbox.json".encode(report), "\n")
  else
    require "agentbox.cli._bench_show".leaderboard(report)
    io.stdout:write("report ", out.line(args.out), "/REPORT.md\n")
  end
  if status == 130 or status == 3 then
    io.stderr:write("Go on with: agentbox bench run --resume --out ", out.line(args.out), status == 3 and " --retry-errors" or "", "\n")
  end
end

local function perform(args, suite, students)
  local opts, err = options_of(args, suite, students)
  if not opts then return nil, err end
  local started
  started, err = require "agentbox.suite".start(opts)
  if not started then return nil, err end
  local run <close> = started
  local state = {}
  local fibers = on_signals(run, state)
  fibers[#fibers + 1] = watch(run)
  local report
  report, err = run:wait()
  for _, fiber in ipairs(fibers) do fiber:cancel() end
  if not report then return nil, err end
  local status = status_of(args, report, state)
  tell(args, report, status)
  return status
end

---@async
---@param args table
---@return integer? status
---@return table? err
function M.run(args)
  args.out = args.out or "bench-results/latest"
  local ok, err = check_numbers(args)
  if ok and args.resume then ok, err = recall(args) end
  if not ok then return nil, err end
  if not args.suite then return usage "a suite is needed" end
  local config, suite, students
  config, err = require "agentbox.cli._run".config { base_url = args.base_url, api_key = args.api_key }
  if not config then return nil, err end
  suite, err = require "agentbox.suite".load(args.suite)
  if not suite then return nil, err end
  students, err = students_of(args, config)
  if not students then return nil, err end
  if not args.no_probe then
    ok, err = probe(students)
    if not ok then return nil, err end
  end
  local status
  status, err = perform(args, suite, students)
  for _, student in ipairs(students) do student.model:close() end
  return status, err
end

return M

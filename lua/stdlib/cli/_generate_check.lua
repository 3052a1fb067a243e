--- `agentbox generate stats`, `validate-sandbox` and `validate-llm`.
local clean = require "agentbox.cli._out".line
local setup = require "agentbox.cli._generate_setup"

local M = {}

local function print_coverage(rows)
  if #rows == 0 then return end
  io.stdout:write "\naccepted  tried  difficulty  family\n"
  for _, row in ipairs(rows) do
    io.stdout:write(("%8d  %5d  %-10s  %s\n"):format(row.accepted, row.tried, clean(row.difficulty), clean(row.family)))
  end
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.stats(args)
  local found, err = require "agentbox.generate".stats(args.dir)
  if not found then return nil, err end
  local json = require "agentbox.json"
  if args.json then
    io.stdout:write(json.encode(found, { sorted = true }), "\n")
    return 0
  end
  io.stdout:write(("accepted  %d\ntried     %d\n"):format(found.accepted, found.tried))
  for _, stage in ipairs(require "agentbox.schema".names(found.rejected)) do
    io.stdout:write(("rejected  %d by %s\n"):format(found.rejected[stage], clean(stage)))
  end
  io.stdout:write(("spent     %d calls, %d tokens\n"):format(found.spent.calls or 0, found.spent.tokens or 0))
  print_coverage(found.coverage)
  return 0
end

local function tasks_of(dir)
  local tasks, err = require "agentbox.task".dir(dir)
  if not tasks then return nil, err end
  if #tasks == 0 then return setup.usage("no tasks in " .. dir) end
  return tasks
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.sandbox(args)
  local tasks, err = tasks_of(args.dir)
  if not tasks then return nil, err end
  local good = 0
  for _, task in ipairs(tasks) do
    local ok, why = require "agentbox.generate".validate(task, { language = args.domain })
    if ok == nil and why.code ~= "task" then return nil, why end
    good = good + (ok and 1 or 0)
    local reason = type(why) == "table" and why.msg or tostring(why)
    io.stdout:write(ok and "OK   " or "FAIL ", clean(task.task_id), ok and "" or ": " .. clean(reason), "\n")
    io.stdout:flush()
  end
  io.stdout:write(("%d of %d tasks stand\n"):format(good, #tasks))
  return good == #tasks and 0 or 1
end

local function print_row(row)
  io.stdout:write(row.ok and "OK     " or "REJECT ", clean(row.task_id), (" %.2f"):format(row.llm_score),
    row.votes > 1 and (" (%d of %d votes)"):format(row.yes, row.votes) or "", row.ok and "" or ": " .. clean(row.errors[1] or ""), "\n")
  io.stdout:flush()
end

local function print_audit(audit, args)
  local kappa = audit.kappa and (", kappa %.2f"):format(audit.kappa) or ""
  io.stdout:write(("%d of %d tasks accepted, votes agree %.2f%s; %d judged now → %s\n"):format(audit.good, #audit.rows, audit.agreement,
    kappa, audit.asked, clean(args.out)))
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.llm(args)
  args.out = args.out or "generated/llm_audit.jsonl"
  local config, err = require "agentbox.config".load()
  if not config then return nil, err end
  local tasks
  tasks, err = tasks_of(args.dir)
  if not tasks then return nil, err end
  local judging, model, concurrency, max_tokens
  judging, err = setup.judging(args, config)
  if not err then model, err = setup.judge_model(args, config) end
  if not err then concurrency, err = setup.setting(args, "concurrency", config, "generate.concurrency", 8) end
  if not err then max_tokens, err = setup.setting(args, "max_tokens", config, "generate.max_tokens", 8192) end
  if err then return nil, err end
  local prices, bad = setup.prices(args)
  if bad then return setup.usage(bad) end
  local audit
  audit, err = require "agentbox.generate".judge(tasks, { model = model, votes = judging.votes, min_score = judging.min_score,
    rubric = judging.rubric, out = args.out, concurrency = concurrency, max_tokens = max_tokens, caps = setup.caps(args), prices = prices,
    on_row = not args.json and print_row or nil })
  if not audit then return nil, err end
  if args.json then
    io.stdout:write(require "agentbox.json".encode(audit, { sorted = true }), "\n")
  else
    print_audit(audit, args)
  end
  return audit.good == #tasks and 0 or 1
end

return M

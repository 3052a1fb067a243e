--- The figures of a page that need statistics: for each model, and for all together, how often it succeeded, its mean
--- reward and pass@k, each with an interval that takes the task as the unit.
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local stats = require "agentbox.stats"
local time = require "agentbox.sys.time"

local M = {}

-- An attempt that was made again is not another trial: of a place in the run the last attempt counts.
local function last_attempts(rows)
  local last, out = {}, {}
  for _, row in ipairs(rows) do
    local before = row.slot and last[row.slot]
    if not before then
      out[#out + 1] = row
      if row.slot then last[row.slot] = #out end
    elseif row.attempt >= out[before].attempt then
      out[before] = row
    end
  end
  return out
end

local function by_task(rows)
  local list, known = {}, {}
  for _, row in ipairs(rows) do
    local task = known[row.task]
    if not task then
      task = { n = 0, c = 0, sum = 0.0 }
      known[row.task], list[#list + 1] = task, task
    end
    if row.reward ~= nil then
      task.n, task.sum = task.n + 1, task.sum + row.reward
      if row.status == "success" then task.c = task.c + 1 end
    end
  end
  return list
end

local function ratio(tasks, num, den, bounded)
  local list = {}
  for _, task in ipairs(tasks) do
    if den(task) > 0 then list[#list + 1] = { num = num(task), den = den(task) } end
  end
  local found = stats.ratio(list, { bounded = bounded, resamples = 500 })
  return { value = found.estimate, low = found.low, high = found.high, tasks = found.tasks, method = found.method }
end

local function passes(tasks)
  local out, most = json.array {}, 0
  for _, task in ipairs(tasks) do most = math.max(most, task.n) end
  local k = 1
  while k <= most do
    local one = ratio(tasks, function(task) return task.n >= k and stats.pass_at(task.n, task.c, k) or 0 end,
      function(task) return task.n >= k and 1 or 0 end, true)
    one.k = k
    out[#out + 1] = one
    k = k < most and math.min(k * 2, most) or k + 1
  end
  return out
end

local function of_model(name, rows)
  local tasks, infra, tokens, solved, within = by_task(rows), 0, 0, 0, true
  for _, row in ipairs(rows) do
    if row.reward == nil then infra = infra + 1 end
    if row.tokens then tokens = tokens + row.tokens end
    if row.status == "success" then solved = solved + 1 end
    if row.reward and (row.reward < 0 or row.reward > 1) then within = false end
  end
  local function n(task) return task.n end
  return {
    model = name, rollouts = #rows, tasks = #tasks, unscored = infra, solved = solved, tokens = tokens,
    success = ratio(tasks, function(task) return task.c end, n, true),
    reward = ratio(tasks, function(task) return task.sum end, n, within), pass = passes(tasks),
  }
end

--- The figures of rows.
---@param rows table[]
---@return { all: table, models: table[] }
function M.of(rows)
  rows = last_attempts(rows)
  local names, lists = {}, {}
  for _, row in ipairs(rows) do
    local name = row.model or "?"
    if not lists[name] then
      names[#names + 1], lists[name] = name, {}
    end
    table.insert(lists[name], row)
  end
  local all = of_model("all", rows)
  local models = json.array {}
  for i, name in ipairs(names) do
    models[i] = #names == 1 and of_model(name, {}) or of_model(name, lists[name])
    if #names == 1 then
      for key, value in pairs(all) do models[i][key] = value end
      models[i].model = name
    end
  end
  table.sort(models, function(a, b)
    local x, y = a.success.value or -1, b.success.value or -1
    if x ~= y then return x > y end
    return a.model < b.model
  end)
  return { all = all, models = models }
end

--- What a page is told besides its rows.
---@param path string
---@param rows table[]
---@param more table
---@return table page
function M.page(path, rows, more)
  local out = {
    schema = "agentbox.page/1", source = path, made = time.now(), engine = os_.version, figures = M.of(rows),
  }
  for key, value in pairs(more) do out[key] = value end
  return out
end

return M

--- What a run amounts to: counts, rewards, pass@k, tokens, cost and time, in one reading. docs/metrics.md has every
--- formula.
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"
local ranks = require "agentbox.export.ranks"
local read = require "agentbox.store.read"
local scan = require "agentbox.store.scan"
local sketch = require "agentbox.store.sketch"

local M = {}

-- Members that stay text; nearly all bytes of a line are theirs.
local UNREAD = {
  raw = {
    "nodes", "tool_runs", "request", "response", "prompt", "out", "lp", "tools", "verify", "tamper", "metadata", "logs",
    "modules", "artifacts", "errors", "describe", "components", "scorer", "sampling", "notes",
  },
}

-- Parts of a rollout's time, as `timing` names them.
local PARTS = { "queued", "boot", "seed", "model", "tool", "score" }
local MAX_REWARDS = 32

local value_of = json.plain

local function number(field)
  field = value_of(field)
  return type(field) == "number" and field or nil
end

local function bump(counts, key, by)
  key = tostring(key)
  counts[key] = (counts[key] or 0) + (by or 1)
end

---@class agentbox.Statistics
local Statistics = {}
Statistics.__index = Statistics

local function new()
  local self = {
    rollouts = 0, retries = 0, scored = 0, by_status = {}, by_stop = {}, by_class = {}, tasks = {}, rewards = {},
    distinct = 0, reward = sketch.new(), duration = sketch.new(), steps = sketch.new(), tool_calls = sketch.new(),
    tokens = sketch.new(), models = {}, parts = {}, total_ms = 0, groups = 0, ranked = 0,
  }
  for _, part in ipairs(PARTS) do self.parts[part] = sketch.new() end
  return setmetatable(self, Statistics)
end

-- What its group's ranking gave a rollout stands before what its verifier said, as in an export.
local function add_reward(self, line, task, rank)
  local value = line.reward.scored and number(line.reward.value)
  if rank then
    self.ranked = self.ranked + 1
    value = number(rank.reward)
  end
  if not value then return end
  self.scored = self.scored + 1
  self.reward:add(value)
  task.n, task.sum = task.n + 1, task.sum + value
  if value_of(line.final_status) == "success" then task.c = task.c + 1 end
  if self.rewards and not self.rewards[value] then
    self.distinct = self.distinct + 1
    if self.distinct > MAX_REWARDS then self.rewards = nil end
  end
  if self.rewards then self.rewards[value] = (self.rewards[value] or 0) + 1 end
end

local function add_call(self, call, model)
  local usage = value_of(call.usage)
  if not usage then return end
  local name = value_of(call.model) or model or "?"
  local sum = self.models[name]
  if not sum then
    sum = { calls = 0, prompt = 0, cached = 0, completion = 0 }
    self.models[name] = sum
  end
  sum.calls = sum.calls + 1
  for _, key in ipairs { "prompt", "cached", "completion" } do sum[key] = sum[key] + (number(usage[key]) or 0) end
end

local function add_time(self, line, metrics)
  local timing = value_of(line.timing) or {}
  local total = number(timing.total_ms) or (number(metrics.duration_s) or 0) * 1000
  self.total_ms = self.total_ms + total
  for _, part in ipairs(PARTS) do
    local ms = number(timing[part .. "_ms"])
    if ms then self.parts[part]:add(ms) end
  end
  local duration = number(metrics.duration_s)
  if duration then self.duration:add(duration) end
end

--- Adds one record.
---@param line table
---@param rank? { reward: number|false }    # what its group's ranking gave it
function Statistics:add(line, rank)
  local metrics, about = value_of(line.metrics) or {}, value_of(line.task) or {}
  local id = tostring(value_of(about.id))
  local task = self.tasks[id]
  if not task then
    task = { n = 0, c = 0, sum = 0.0, rollouts = 0 }
    self.tasks[id] = task
  end
  self.rollouts, task.rollouts = self.rollouts + 1, task.rollouts + 1
  if (number(line.attempt) or 0) > 0 then self.retries = self.retries + 1 end
  bump(self.by_status, value_of(line.final_status) or line.status)
  bump(self.by_stop, line.stop.reason)
  local class = value_of(line.stop.class)
  if class then bump(self.by_class, class) end
  add_reward(self, line, task, rank)
  add_time(self, line, metrics)
  for _, key in ipairs { "steps", "tool_calls" } do
    if number(metrics[key]) then self[key]:add(number(metrics[key])) end
  end
  local usage = value_of(line.usage)
  if usage and number(usage.total) then self.tokens:add(number(usage.total)) end
  local model = value_of((value_of(line.policy) or {}).model)
  for _, call in ipairs(line.calls) do add_call(self, call, model) end
end

-- 1 - C(n-c, k) / C(n, k), as a product that neither overflows nor cancels.
local function pass_at(n, c, k)
  if n - c < k then return 1.0 end
  local miss = 1.0
  for i = n - c + 1, n do miss = miss * (1 - k / i) end
  return 1 - miss
end

--- The chance that at least one of k rollouts of a task is a success, estimated without bias from all its scored
--- rollouts and averaged over the tasks that have at least k of them (Chen et al. 2021, "Evaluating Large Language
--- Models Trained on Code", section 2.1).
---@param k integer
---@return number? rate     # nil: no task has k scored rollouts
---@return integer tasks    # how many have
function Statistics:pass_at(k)
  local sum, tasks = 0.0, 0
  for _, task in pairs(self.tasks) do
    if task.n >= k then sum, tasks = sum + pass_at(task.n, task.c, k), tasks + 1 end
  end
  return tasks > 0 and sum / tasks or nil, tasks
end

M.pass_at = pass_at

---@class agentbox.Price
---@field prompt number       # for a million tokens
---@field completion number
---@field cached? number      # of prompt tokens that the server had; default: as prompt

-- The price of a model: by its name, by its name without the step (`fixer@12`), or by the longest pattern that ends
-- in `*`.
local function price_of(prices, name)
  local base = name:match "^(.-)@[^@]*$" or name:match "^(.-):step%d+$"
  local found, longest = prices[name] or base and prices[base], -1
  if found then return found end
  for pattern, price in pairs(prices) do
    local stem = pattern:match "^(.*)%*$"
    if stem and name:sub(1, #stem) == stem and #stem > longest then found, longest = price, #stem end
  end
  return found
end

local function cost_of(sum, price)
  local cached = price.cached or price.prompt
  return ((sum.prompt - sum.cached) * price.prompt + sum.cached * cached + sum.completion * price.completion) / 1e6
end

--- What tokens cost.
---@param prices table<string, agentbox.Price>
---@param name string                                                            # of the model
---@param tokens { prompt: integer, cached: integer, completion: integer }
---@return number?     # nil: no price for this model
function M.cost(prices, name, tokens)
  local price = price_of(prices, name)
  return price and cost_of(tokens, price)
end

local function percentiles(s, with_sum)
  if s.n == 0 then return nil end
  local out = json.object {}
  out.n, out.mean, out.min = s.n, s:mean(), s.min
  for _, p in ipairs { 50, 90, 99 } do out["p" .. p] = s:quantile(p / 100) end
  out.max = s.max
  if with_sum then out.sum = s.sum end
  return out
end

local function sorted(counts)
  local out = json.object {}
  local keys = {}
  for key in pairs(counts) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  for _, key in ipairs(keys) do out[key] = counts[key] end
  return out
end

local function rewards_of(self)
  local out = percentiles(self.reward)
  if not out then return nil end
  out.deviation = self.reward:deviation()
  if self.rewards then
    local values = {}
    for value in pairs(self.rewards) do values[#values + 1] = value end
    table.sort(values)
    out.values = json.array {}
    for i, value in ipairs(values) do out.values[i] = json.array { value + 0.0, self.rewards[value] } end
  end
  return out
end

local function passes_of(self, ks)
  local out, most = json.array {}, 0
  for _, task in pairs(self.tasks) do most = math.max(most, task.n) end
  if not ks then
    ks = {}
    local k = 1
    while k <= most do ks[#ks + 1], k = k, k * 2 end
  end
  for _, k in ipairs(ks) do
    local rate, tasks = self:pass_at(k)
    local entry = json.object {}
    entry.k, entry.rate, entry.tasks = k, rate or json.null, tasks
    out[#out + 1] = entry
  end
  return out
end

local function models_of(self, prices)
  local out, total, unknown = json.object {}, 0.0, json.array {}
  local names = {}
  for name in pairs(self.models) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local sum, entry = self.models[name], json.object {}
    entry.calls, entry.prompt, entry.cached, entry.completion = sum.calls, sum.prompt, sum.cached, sum.completion
    local price = prices and price_of(prices, name)
    if price then
      entry.cost = cost_of(sum, price)
      total = total + entry.cost
    elseif prices then
      unknown[#unknown + 1] = name
    end
    out[name] = entry
  end
  return out, prices and total or nil, unknown
end

local function times_of(self)
  local out, rest = json.object {}, self.total_ms
  for _, part in ipairs(PARTS) do
    out[part] = percentiles(self.parts[part], true)
    -- A rollout's clock starts when it leaves the queue.
    if part ~= "queued" then rest = rest - self.parts[part].sum end
  end
  out.other_ms, out.total_ms = math.max(0, rest), self.total_ms
  return out
end

--- Everything as one table, in the order of docs/metrics.md.
---@param opts? { k?: integer[], prices?: table<string, agentbox.Price> }
---@return table
function Statistics:report(opts)
  local out = json.object {}
  local tasks = 0
  for _ in pairs(self.tasks) do tasks = tasks + 1 end
  out.rollouts, out.tasks, out.groups, out.retries = self.rollouts, tasks, self.groups, self.retries
  out.scored, out.unscored = self.scored, self.rollouts - self.scored
  if self.ranked > 0 then out.ranked = self.ranked end
  out.by_status, out.by_stop, out.by_class = sorted(self.by_status), sorted(self.by_stop), sorted(self.by_class)
  out.success_rate = self.rollouts > 0 and (self.by_status.success or 0) / self.rollouts or json.null
  out.reward = rewards_of(self)
  out.pass_at = passes_of(self, opts and opts.k)
  out.duration_s, out.steps = percentiles(self.duration), percentiles(self.steps)
  out.tool_calls = percentiles(self.tool_calls)
  out.tokens = percentiles(self.tokens, true)
  local cost, unknown
  out.models, cost, unknown = models_of(self, opts and opts.prices)
  out.cost = cost
  if #unknown > 0 then out.unpriced = unknown end
  out.time_ms = times_of(self)
  return out
end

local function count_groups(self, run_dir)
  local path = run_dir .. "/groups.jsonl"
  if not fs.stat(path) then return end
  local file <close> = assert(lines.open(path))
  for _ in file.next, file do self.groups = self.groups + 1 end
end

--- Reads everything below a path once.
---
--- Returns nil, err when there is nothing, or a line is damaged: `notfound`, `parse`, `io`, `denied`.
---@async
---@nodiscard
---@param path string
---@return agentbox.Statistics?
---@return agentbox.Err? err
function M.of(path)
  local files, problem = read.files(path)
  if not files then return nil, problem end
  local by_id, bad = ranks.read { path }
  if bad then return nil, bad end
  local self, last = new(), nil
  local function add(line) self:add(line, by_id and by_id[line.id]) end
  for _, file in ipairs(files) do
    local ok
    if file.lines then
      ok, problem = scan(file.path, UNREAD, add)
    else
      ok, problem = read.visit(file.path, function(t) add(t.line) end)
    end
    if not ok then return nil, problem end
    if file.run_dir and file.run_dir ~= last then count_groups(self, file.run_dir) end
    last = file.run_dir
  end
  return self
end

return M

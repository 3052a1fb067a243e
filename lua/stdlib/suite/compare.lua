--- Two results of the same tasks, side by side: each student's difference, whether it is more than chance, and which
--- tasks make it.
local json = require "agentbox.json"
local paired = require "agentbox.stats.paired"
local put = require "agentbox.suite.put"

local M = {}

--- How many tasks are named, those that explain most first.
M.MAX_TASKS = 50

local function by_id(report)
  local out = {}
  for _, one in ipairs(report.models) do out[one.model_id] = one end
  return out
end

local function null(value) return value == nil or value == json.null end

-- What both have a score of: differences b - a of a member, and each with its task.
local function differences(a, b, member)
  local of_a, list, tasks = {}, {}, {}
  for _, task in ipairs(a.by_task) do of_a[task.task_id] = task end
  for _, task in ipairs(b.by_task) do
    local before = of_a[task.task_id]
    if before and not null(before[member]) and not null(task[member]) then
      list[#list + 1] = task[member] - before[member]
      tasks[#tasks + 1] = { task_id = task.task_id, a = before[member], b = task[member], delta = list[#list] }
    end
  end
  return list, tasks
end

local function paired_of(list, opts)
  local p, out = paired.of(list, opts), json.object {}
  put(out, "tasks", p.n, "mean", p.mean or json.null, "sd", p.sd or json.null, "low", p.low or json.null,
    "high", p.high or json.null)
  put(out, "sign", json.object(p.sign), "permutation", json.object(p.permutation))
  put(out, "d_z", p.effect.d_z or json.null, "dominance", p.effect.dominance)
  return out
end

-- Tasks by how much of the difference is theirs. A share is of the sum of all absolute differences.
local function explained(tasks)
  local total, list = 0.0, json.array {}
  for _, task in ipairs(tasks) do total = total + math.abs(task.delta) end
  table.sort(tasks, function(x, y)
    if math.abs(x.delta) ~= math.abs(y.delta) then return math.abs(x.delta) > math.abs(y.delta) end
    return x.task_id < y.task_id
  end)
  for _, task in ipairs(tasks) do
    if task.delta == 0 or #list == M.MAX_TASKS then break end
    local entry = json.object {}
    put(entry, "task_id", task.task_id, "a", task.a, "b", task.b, "delta", task.delta,
      "share", math.abs(task.delta) / total)
    list[#list + 1] = entry
  end
  return list
end

local function sub(a, b) return not null(a) and not null(b) and b - a or json.null end

local function delta_of(a, b, opts)
  local out = json.object {}
  out.model_id = a.model_id
  if a.model_id ~= b.model_id then out.model_id_b = b.model_id end
  for _, name in ipairs { "success_rate", "mean_steps", "mean_reward" } do
    local x, y = a.aggregate[name], b.aggregate[name]
    if name == "mean_reward" and x == nil then x, y = json.null, json.null end
    out[name .. "_a"], out[name .. "_b"], out["delta_" .. name] = x, y, sub(x, y)
  end
  local list, tasks = differences(a, b, "pass_at_1")
  out.success = paired_of(list, opts)
  out.reward = paired_of((differences(a, b, "mean_reward")), opts)
  out.explained_by = explained(tasks)
  return out
end

local function suite_value(report, key)
  local suite = report.suite
  return type(suite) == "table" and not null(suite[key]) and suite[key] or nil
end

local function differing_parts(a, b)
  local x, y = suite_value(a, "parts"), suite_value(b, "parts")
  if not x or not y then return json.array {} end
  return json.array(require "agentbox.suite.seal".differences(x, y))
end

local function subset_text(report)
  local subset = report.subset
  return type(subset) == "table" and ("%d of %d tasks, %s"):format(subset.tasks, subset.of, subset.hash) or "the whole suite"
end

-- Which student of A stands beside which of B: those of one id; where each has one alone, these two.
local function partners(a, b, opts, warnings)
  local of_a, of_b, list = by_id(a), by_id(b), {}
  local x, y = opts.student_a, opts.student_b
  if x or y or #a.models == 1 and #b.models == 1 then
    local first, second = x or y or a.models[1].model_id, y or x or b.models[1].model_id
    if of_a[first] and of_b[second] then return { { of_a[first], of_b[second] } } end
    warnings[#warnings + 1] = ("no such student: %s"):format(of_a[first] and second or first)
    return list
  end
  local ids = {}
  for id in pairs(of_a) do ids[#ids + 1] = id end
  table.sort(ids)
  for _, id in ipairs(ids) do
    if of_b[id] then list[#list + 1] = { of_a[id], of_b[id] }
    else warnings[#warnings + 1] = ("%s is only in A"):format(id) end
  end
  for _, one in ipairs(b.models) do
    if not of_a[one.model_id] then warnings[#warnings + 1] = ("%s is only in B"):format(one.model_id) end
  end
  return list
end

local function warn(a, b, warnings)
  local function add(text, ...) warnings[#warnings + 1] = text:format(...) end
  if a.suite_id ~= b.suite_id then add("different suites: %s and %s", a.suite_id, b.suite_id) end
  if null(a.suite_content_hash) or null(b.suite_content_hash) then add "a suite has no content hash: nothing says that they are the same"
  elseif a.suite_content_hash ~= b.suite_content_hash then add "different content hashes: these are not the same tasks" end
  local parts = differing_parts(a, b)
  if #parts > 0 then add("not made alike, different in: %s", table.concat(parts, ", ")) end
  if subset_text(a) ~= subset_text(b) then add("different subsets: %s; %s", subset_text(a), subset_text(b)) end
  for name, one in pairs { A = a, B = b } do
    if one.valid == false then add("%s is not valid: its own report says why", name) end
  end
  table.sort(warnings)
end

---@class agentbox.CompareOpts
---@field student_a? string   # compare this one of A
---@field student_b? string   # with this one of B
---@field level? number
---@field resamples? integer
---@field seed? integer

--- Compares two reports; differences are B less A.
---@param a table
---@param b table
---@param opts? agentbox.CompareOpts
---@return table   # suite_id, hash_match, seal_match, warnings, deltas
function M.of(a, b, opts)
  opts = opts or {}
  local warnings, out = json.array {}, json.object {}
  warn(a, b, warnings)
  local settings = { level = opts.level or 0.95, resamples = opts.resamples or 1000, seed = opts.seed or 42 }
  out.suite_id = a.suite_id
  out.hash_match = not null(a.suite_content_hash) and a.suite_content_hash == b.suite_content_hash
  local x, y = suite_value(a, "seal"), suite_value(b, "seal")
  out.seal_match = x ~= nil and x == y
  out.differs = differing_parts(a, b)
  put(out, "warnings", warnings, "deltas", json.array {})
  for i, pair in ipairs(partners(a, b, opts, warnings)) do out.deltas[i] = delta_of(pair[1], pair[2], settings) end
  return out
end

return M

--- The attempts of a result, as flat rows read from its records: one for each place of the suite, the last attempt that
--- was made there.
local failures = require "agentbox.suite.failures"
local fs = require "agentbox.fs"
local integrity = require "agentbox.suite.integrity"
local json = require "agentbox.json"
local read = require "agentbox.store.read"
local scan = require "agentbox.store.scan"
local summary = require "agentbox.store.summary"

local M = {}

--- Parts of a rollout's time, as the record names them.
M.PARTS = { "queued", "boot", "seed", "model", "tool", "score" }

-- Members that stay text unless they are needed.
local UNREAD = {
  raw = {
    "request", "response", "prompt", "out", "lp", "tools", "verify", "logs", "modules", "artifacts", "errors", "describe",
    "components", "scorer", "sampling", "notes", "nodes",
  },
}

---@class agentbox.Attempt
---@field model string          # id of the student
---@field task string
---@field index integer         # from 0
---@field attempt integer       # above 0: earlier ones were spoilt by the infrastructure
---@field id string
---@field scored boolean
---@field success boolean
---@field reward number?        # nil unless scored
---@field status string
---@field stop string
---@field class string?
---@field steps integer
---@field tool_calls integer
---@field calls integer         # of models
---@field prompt integer        # tokens
---@field cached integer
---@field completion integer
---@field told boolean          # the server told how many tokens
---@field duration_s number?
---@field timing table<string, number>   # milliseconds
---@field total_ms number
---@field failure_kind string?  # seed, setup_check
---@field marks table<string, true>      # integrity.MARKS
---@field suspicious boolean
---@field kind table?           # of its failure
---@field spoilt table<string, integer>? # earlier attempts, by class
---@field path string           # PATH#ID of the record

local value_of = json.plain

local function number(field)
  field = value_of(field)
  return type(field) == "number" and field or nil
end

local function add_usage(row, line)
  for _, call in ipairs(line.calls) do
    local usage = value_of(call.usage)
    if usage then
      row.told = true
      for _, key in ipairs { "prompt", "cached", "completion" } do row[key] = row[key] + (number(usage[key]) or 0) end
      row.served = row.served or value_of(call.model)
    end
  end
end

local function add_time(row, line, metrics)
  local timing = value_of(line.timing) or {}
  for _, part in ipairs(M.PARTS) do row.timing[part] = number(timing[part .. "_ms"]) end
  row.duration_s = number(metrics.duration_s)
  row.total_ms = number(timing.total_ms) or (row.duration_s or 0) * 1000
end

-- Which attempt at its task a record is: of a suite's run its group is called TASK, TASK#2, ...; of one that goes on with more
-- members, TASK+8, TASK#2+8.
local function index_of(group, task)
  if not group then return 0 end
  local id = tostring(value_of(group.id))
  local rest = id:sub(1, #task) == task and id:sub(#task + 1) or ""
  local turn, from = rest:match "^#(%d+)", rest:match "%+(%d+)$"
  if rest ~= (turn and "#" .. turn or "") .. (from and "+" .. from or "") then turn, from = nil, nil end
  local before = (math.tointeger(turn and tonumber(turn)) or 1) - 1 + (math.tointeger(from and tonumber(from)) or 0)
  return before + (number(group.index) or 0)
end

--- The row of a record.
---@param line table
---@param model string   # id of the student
---@param path string    # of its run's folder
---@return agentbox.Attempt row
function M.row(line, model, path)
  local metrics, about, group = value_of(line.metrics) or {}, value_of(line.task) or {}, value_of(line.group)
  local class, metadata = value_of(line.stop.class), value_of(line.metadata) or {}
  local status, task = value_of(line.final_status) or line.status, tostring(value_of(about.id))
  local row = {
    model = model, task = task, index = index_of(group, task),
    attempt = number(line.attempt) or 0, id = line.id, slot = summary.slot(group, line.id), scored = line.reward.scored == true,
    status = status, stop = line.stop.reason, class = class, steps = number(metrics.steps) or 0,
    tool_calls = number(metrics.tool_calls) or 0, calls = #line.calls, prompt = 0, cached = 0, completion = 0, told = false,
    timing = {}, failure_kind = value_of(metadata.failure_kind), path = ("%s#%s"):format(path, line.id),
    started = number(line.started), finished = number(line.finished),
  }
  row.success = row.scored and status == "success"
  row.reward = row.scored and number(line.reward.value) or nil
  row.scored = row.reward ~= nil
  add_usage(row, line)
  add_time(row, line, metrics)
  if not row.success then row.kind = failures.kind(line) end
  row.marks = integrity.marks(line)
  row.suspicious = integrity.is_suspicious(row.marks)
  return row
end

-- Keeps the last attempt of each place; what earlier ones were spoilt by is counted on it.
local function keep(found, row)
  local before = found.by_slot[row.slot]
  if not before then
    found.by_slot[row.slot] = row
    found.order[#found.order + 1] = row.slot
    return
  end
  local last, first = row, before
  if before.attempt > row.attempt then last, first = before, row end
  last.spoilt = before.spoilt or row.spoilt or {}
  local class = first.class or "engine"
  last.spoilt[class] = (last.spoilt[class] or 0) + 1
  found.by_slot[row.slot] = last
end

local function read_folder(dir, each)
  local files, problem = read.files(dir)
  if not files then
    if problem.code == "notfound" then return true end
    return nil, problem
  end
  for _, file in ipairs(files) do
    local ok
    if file.lines then ok, problem = scan(file.path, UNREAD, each)
    else ok, problem = read.visit(file.path, function(t) each(t.line) end) end
    if not ok then return nil, problem end
  end
  return true
end

--- The rows of one student, by task and place.
---@async
---@param dir string     # of its records; one that is not there has none
---@param model string
---@param shown? string  # the folder as links name it
---@return agentbox.Attempt[]?
---@return agentbox.Err? err
function M.of(dir, model, shown)
  local found = { by_slot = {}, order = {} }
  if not fs.exists(dir) then return {} end
  local ok, problem = read_folder(dir, function(line) keep(found, M.row(line, model, shown or dir)) end)
  if not ok then return nil, problem end
  local rows = {}
  for i, slot in ipairs(found.order) do rows[i] = found.by_slot[slot] end
  table.sort(rows, function(a, b)
    if a.task ~= b.task then return a.task < b.task end
    if a.index ~= b.index then return a.index < b.index end
    return a.id < b.id
  end)
  return rows
end

return M

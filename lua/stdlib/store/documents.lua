--- AgentBox's document of each rollout: `DIR/<task>_<run8>.json`, and `_2`, `_3`, ... where several share task and run.
---
--- A document is written before its line. A crash between the two leaves one without a line, whose rollout is made
--- again: `sweep` removes it when the run is opened again.
local agentbox = require "agentbox.formats.agentbox"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local name = require "agentbox.store.name"
local secret = require "agentbox.secret"

local M = {}

local function stem_of(task_id, run_id)
  return ("%s_%s"):format(name.safe(task_id), name.safe(run_id:sub(1, 8)))
end

local function text_of(t)
  return secret.redact(agentbox.text(t))
end

--- Writes the document of a rollout. `numbers` remembers for one folder how far names are taken.
---@async
---@nodiscard
---@param dir string
---@param t agentbox.Traj
---@param numbers table<string, integer>
---@return string? path
---@return agentbox.Err? err
function M.write(dir, t, numbers)
  local text, stem = text_of(t), dir .. "/" .. stem_of(t.task_id, t.run_id)
  while true do
    local n = (numbers[stem] or 0) + 1
    numbers[stem] = n
    local path = n == 1 and stem .. ".json" or ("%s_%d.json"):format(stem, n)
    -- Looking is cheap; trying writes the whole file first.
    local ok, problem
    if not fs.exists(path) then ok, problem = fs.write(path, text, { sync = true, exclusive = true }) end
    if ok then return path end
    if problem and problem.code ~= "exists" then
      numbers[stem] = n - 1
      return nil, problem
    end
  end
end

-- The files of a folder that are named as documents, by the stem of their names.
local function documents_of(dir)
  local found = {}
  for _, entry in ipairs(fs.list(dir) or {}) do
    local stem = entry.type == "file" and entry.name:match "^(.*)%.json$"
    for _, key in ipairs(stem and { stem, stem:match "^(.*)_%d+$" } or {}) do
      found[key] = found[key] or {}
      table.insert(found[key], dir .. "/" .. entry.name)
    end
  end
  return found
end

-- Removes those of a run's documents that say what no line says.
local function remove_orphans(paths, run_id, rows, read_at)
  local known = {}
  for _, row in ipairs(rows) do
    local t = read_at(row)
    if not t then return end -- a damaged line may be the one
    known[hash.sha256(text_of(t))] = true
  end
  for _, path in ipairs(paths) do
    local text = fs.read(path)
    local doc = text and not known[hash.sha256(text)] and json.decode(text)
    if json.is_object(doc) and doc.run_id == run_id then fs.remove(path) end
  end
end

--- Removes documents of a run that have no line. Only where a task has more documents than lines is any of them read.
---@async
---@param dir string
---@param run_id string
---@param each fun(): agentbox.Summary?       # the rows of the run
---@param read_at fun(row: agentbox.Summary): agentbox.Traj?
function M.sweep(dir, run_id, each, read_at)
  local found = documents_of(dir)
  if not next(found) then return end
  local by_stem = {}
  for row in each do
    local stem = stem_of(row.task or "", run_id)
    by_stem[stem] = by_stem[stem] or {}
    table.insert(by_stem[stem], row)
  end
  local suffix = "_" .. name.safe(run_id:sub(1, 8))
  for stem, paths in pairs(found) do
    if stem:sub(-#suffix) == suffix and #paths > #(by_stem[stem] or {}) then
      remove_orphans(paths, run_id, by_stem[stem] or {}, read_at)
    end
  end
end

return M

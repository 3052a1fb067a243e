--- generate/index.lua: whether a task is nearly one that was accepted: the same interface and tests, or texts that are alike.
---
--- Sketches in bands find what is near among a hundred thousand; only those few are compared.
local hash = require "agentbox.hash"
local minhash = require "agentbox.sys.minhash"
local schema = require "agentbox.schema"

local M = {}

---@class agentbox.DedupIndex
local Index = {}
Index.__index = Index

--- How far an estimate may be off.
local MARGIN = 0.12

---@param threshold number   # from this likeness on a task is a duplicate
---@return agentbox.DedupIndex
function M.new(threshold)
  local rows = threshold >= 0.8 and 8 or threshold >= 0.6 and 4 or threshold >= 0.4 and 2 or 1
  return setmetatable({ _threshold = threshold, _near = minhash.new(rows), _names = {}, _texts = {}, _exact = {} }, Index)
end

local function normal(text) return (text:lower():gsub("%s+", " "):match "^%s*(.-)%s*$") end

--- The interface and the tests, as 24 digits: names of functions, then the tests.
---@param defs string[]                  # sorted, without repeats
---@param tests table<string, string>
---@return string
function M.signature(defs, tests)
  local bodies = {}
  for i, path in ipairs(schema.names(tests)) do bodies[i] = normal(tests[path]) end
  return hash.sha256(table.concat(defs, ",") .. "||" .. table.concat(bodies, "\n")):sub(1, 24)
end

--- What is compared: starter and tests, in the order of their paths.
---@param files table<string, string>
---@return string
function M.text(files)
  local parts = {}
  for i, path in ipairs(schema.names(files)) do parts[i] = normal(files[path]) end
  return table.concat(parts, " ")
end

-- Without our own files, which are the same in all tasks of a language.
local function parts_of(task, language)
  local texts, tests = {}, {}
  for path, file in pairs(task.files) do
    if not language.support[path] then
      texts[path] = file.bytes
      if language.is_test(path) then tests[path] = file.bytes end
    end
  end
  local defs = {}
  for path, text in pairs(texts) do
    if not tests[path] then
      for name in text:gmatch "def ([%a_][%w_]*)" do defs[name] = true end
    end
  end
  return M.signature(schema.names(defs), tests), M.text(texts)
end

--- The accepted task that a candidate is nearly the same as.
---@param cand { task: agentbox.Task, language: agentbox.Language }
---@return string? task_id
---@return number? likeness
function Index:find(cand)
  local signature, text = parts_of(cand.task, cand.language)
  if self._exact[signature] then return self._exact[signature], 1.0 end
  for _, near in ipairs(self._near:near(minhash.sketch(text), self._threshold - MARGIN)) do
    local likeness = minhash.jaccard(text, self._texts[near[1]])
    if likeness >= self._threshold then return self._names[near[1]], likeness end
  end
end

--- Adds an accepted task.
---@param cand { task: agentbox.Task, language: agentbox.Language }
function Index:add(cand)
  local signature, text = parts_of(cand.task, cand.language)
  local number = self._near:add(minhash.sketch(text))
  self._names[number], self._texts[number], self._exact[signature] = cand.task.task_id, text, cand.task.task_id
end

return M

--- generate/index.lua: whether a task is nearly one that was accepted: the same interface and tests, or texts that are alike.
---
--- Sketches in bands find what is near among a hundred thousand; only those few are compared, and their texts are read again from
--- where they were written, so that the index keeps half a kilobyte of a task and not the task.
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
---@param fetch fun(name: string): agentbox.Task?    # a task that was added, nil when it is gone
---@return agentbox.DedupIndex
function M.new(threshold, fetch)
  local rows = threshold >= 0.8 and 8 or threshold >= 0.6 and 4 or threshold >= 0.4 and 2 or 1
  return setmetatable({ _threshold = threshold, _near = minhash.new(rows), _names = {}, _exact = {}, _fetch = fetch }, Index)
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
local function texts_of(task, language)
  local texts = {}
  for path, file in pairs(task.files) do
    if not language.support[path] then texts[path] = file.bytes end
  end
  return texts
end

local function signature_of(texts, language)
  local tests, defs = {}, {}
  for path, text in pairs(texts) do
    if language.is_test(path) then
      tests[path] = text
    else
      for name in text:gmatch "def ([%a_][%w_]*)" do defs[name] = true end
    end
  end
  return M.signature(schema.names(defs), tests)
end

--- The same of a task.
---@param task agentbox.Task
---@param language agentbox.Language
---@return string
function M.signature_of(task, language) return signature_of(texts_of(task, language), language) end

--- The accepted task that a candidate is nearly the same as.
---@async
---@param cand { task: agentbox.Task, language: agentbox.Language }
---@return string? task_id
---@return number? likeness
function Index:find(cand)
  local texts = texts_of(cand.task, cand.language)
  local known = self._exact[signature_of(texts, cand.language)]
  if known and self._fetch(known) then return known, 1.0 end
  local text = M.text(texts)
  for _, near in ipairs(self._near:near(minhash.sketch(text), self._threshold - MARGIN)) do
    local name = self._names[near[1]]
    local other = self._fetch(name)
    local likeness = other and minhash.jaccard(text, M.text(texts_of(other, cand.language))) or 0
    if likeness >= self._threshold then return name, likeness end
  end
end

--- Adds an accepted task.
---@param cand { task: agentbox.Task, language: agentbox.Language }
---@param name? string     # what fetch gives it by; its task_id unless given
function Index:add(cand, name)
  local texts = texts_of(cand.task, cand.language)
  local number = self._near:add(minhash.sketch(M.text(texts)))
  name = name or cand.task.task_id
  self._names[number], self._exact[signature_of(texts, cand.language)] = name, name
end

return M

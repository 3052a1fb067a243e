--- generate/stages.lua: the steps that make a task of a model's answer, as a list that a lab edits.
---
--- A stage is `function(cand, ctx)`: true lets the candidate go on, `false, reason, facts` rejects it, `nil, err` means that it
--- could not be looked at (the infrastructure), which stops the batch and costs the candidate nothing.
local M = {}

---@class agentbox.Stages
---@field [integer] { name: string, run: fun(cand: agentbox.Candidate, ctx: agentbox.GenerateCtx): boolean?, any, table? }
local Stages = {}
Stages.__index = Stages

-- What costs little comes first.
local ORDER = { "draft", "parse", "strip", "repair", "static", "contamination", "dedup", "sandbox", "judge", "solve", "accept" }

--- The built-in stages: two stages unless `one` is given, which has `pair` in the place of `strip`.
---@param one? boolean
---@return agentbox.Stages
function M.new(one)
  local self = setmetatable({}, Stages)
  for i, name in ipairs(ORDER) do
    if one and name == "strip" then name = "pair" end
    self[i] = { name = name, run = require("agentbox.generate.stages." .. name) }
  end
  return self
end

local function place(self, name, verb)
  for i, stage in ipairs(self) do
    if stage.name == name then return i end
  end
  local names = {}
  for i, stage in ipairs(self) do names[i] = stage.name end
  error(("stages:%s: no stage '%s'; there is %s"):format(verb, tostring(name), table.concat(names, ", ")), 3)
end

local function checked(self, name, run, verb)
  if type(name) ~= "string" or type(run) ~= "function" then error(("stages:%s: a name and a function"):format(verb), 3) end
  for _, stage in ipairs(self) do
    if stage.name == name then error(("stages:%s: there is a stage '%s' already"):format(verb, name), 3) end
  end
  return { name = name, run = run }
end

--- Puts a stage before another one.
---@param where string
---@param name string
---@param run function
---@return agentbox.Stages
function Stages:before(where, name, run)
  table.insert(self, place(self, where, "before"), checked(self, name, run, "before"))
  return self
end

--- Puts a stage after another one.
---@param where string
---@param name string
---@param run function
---@return agentbox.Stages
function Stages:after(where, name, run)
  table.insert(self, place(self, where, "after") + 1, checked(self, name, run, "after"))
  return self
end

--- Puts another function in a stage's place.
---@param name string
---@param run function
---@return agentbox.Stages
function Stages:replace(name, run)
  if type(run) ~= "function" then error("stages:replace: a function is expected", 2) end
  self[place(self, name, "replace")] = { name = name, run = run }
  return self
end

--- Takes a stage away.
---@param name string
---@return agentbox.Stages
function Stages:remove(name)
  table.remove(self, place(self, name, "remove"))
  return self
end

return M

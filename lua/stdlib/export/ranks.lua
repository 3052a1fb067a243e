--- Rewards that a run gave its groups by comparing their members (groups.jsonl): they stand in an export instead of what each
--- member's verifier said.
local frame = require "agentbox.store.frame"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local read = require "agentbox.store.read"
local regular = require "agentbox.store.regular"

local M = {}

local function note(ranks, group)
  for i, id in ipairs(group.members) do
    local reward = group.rewards[i]
    ranks[id] = { reward = reward ~= json.null and reward or false, independent = group.independent and group.independent[i] }
  end
end

local function read_groups(ranks, run_dir)
  local path = run_dir .. "/groups.jsonl"
  if not fs.stat(path) then return true end
  local file <close>, problem = regular(path)
  if not file then return nil, problem end
  for line in file:lines "L" do
    local text, whole = frame.read(line)
    local group = whole and text:find('"ranking":', 1, true) and json.decode(text)
    if json.is_object(group) and group.ranking then note(ranks, group) end
  end
  return true
end

--- The ranks below some paths, by the id of the trajectory; nil when there are none.
---@async
---@nodiscard
---@param inputs string[]
---@return table<string, { reward: number|false, independent?: number }>? ranks
---@return agentbox.Err? err
function M.read(inputs)
  local ranks, seen = {}, {}
  for _, path in ipairs(inputs) do
    local files = read.files((path:gsub("#[^#/]*$", "")))
    for _, file in ipairs(files or {}) do
      if file.run_dir and not seen[file.run_dir] then
        seen[file.run_dir] = true
        local ok, problem = read_groups(ranks, file.run_dir)
        if not ok then return nil, problem end
      end
    end
  end
  return next(ranks) and ranks or nil
end

return M

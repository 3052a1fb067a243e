--- generate/heuristic.lua: how hard a task looks, from its texts alone; AgentBox's figures. What a solver's pass rate says is worth more.
local M = {}

local WORDS = { "self%.", "class ", "global ", "state", "cache", "queue" }

local function label(score)
  if score < 0.4 then return "easy" end
  return score < 0.7 and "medium" or "hard"
end

--- The figures of a candidate whose assertions were counted.
---@param files table<string, string>     # starter and tests
---@param asserts integer
---@return { heuristic_score: number, heuristic_label: string, n_asserts: integer, n_files: integer, multi_file: boolean, stateful_hits: integer }
function M.of(files, asserts)
  local count, hits = 0, 0
  for _, text in pairs(files) do
    count = count + 1
    for _, word in ipairs(WORDS) do hits = hits + (text:lower():find(word) and 1 or 0) end
  end
  local score = math.min(1, 0.15 * asserts + (count >= 3 and 0.2 or 0) + 0.05 * hits)
  return { heuristic_score = math.floor(score * 1000 + 0.5) / 1000, heuristic_label = label(score), n_asserts = asserts, n_files = count,
    multi_file = count >= 3, stateful_hits = hits }
end

return M

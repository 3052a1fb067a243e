--- "Did you mean": the nearest name of a closed list.
local M = {}

---Damerau-Levenshtein distance (adjacent transposition counts once), on bytes.
---@param a string
---@param b string
---@return integer
function M.distance(a, b)
  local before, prev = nil, {}
  for j = 0, #b do prev[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      local best = math.min(prev[j] + 1, row[j - 1] + 1, prev[j - 1] + (same and 0 or 1))
      if before and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, before[j - 2] + 1)
      end
      row[j] = best
    end
    before, prev = prev, row
  end
  return prev[#b]
end

---The candidate closest to what was typed, if it is close enough to be meant.
---@param word string
---@param candidates string[]
---@return string?
function M.nearest(word, candidates)
  local limit = #word < 2 and 0 or math.max(1, math.min(3, #word // 3)) -- of one letter nothing can be guessed
  local best, best_distance = nil, limit + 1
  for _, candidate in ipairs(candidates) do
    local distance = M.distance(word:lower(), candidate:lower())
    if distance < best_distance or (distance == best_distance and best and candidate < best) then
      best, best_distance = candidate, distance
    end
  end
  return best
end

---", did you mean 'x'?" or "".
---@param word string
---@param candidates string[]
---@return string
function M.hint(word, candidates)
  local name = M.nearest(word, candidates)
  return name and (", did you mean '%s'?"):format(name) or ""
end

return M

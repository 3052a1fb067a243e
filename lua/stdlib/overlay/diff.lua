--- Line differences between two texts, as a unified diff.
local M = {}

local CONTEXT = 3

local function lines_of(text)
  local lines = {}
  for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- Myers' greedy algorithm: the furthest x on every diagonal k for each number of edits.
local function search(a, b)
  local best, trail = { [1] = 0 }, {}
  for d = 0, #a + #b do
    local copy = {}
    for k = -d, d, 2 do
      local down = k == -d or (k ~= d and best[k - 1] < best[k + 1])
      local x = down and best[k + 1] or best[k - 1] + 1
      local y = x - k
      while x < #a and y < #b and a[x + 1] == b[y + 1] do x, y = x + 1, y + 1 end
      best[k], copy[k] = x, x
      if x >= #a and y >= #b then
        trail[d] = copy
        return trail, d
      end
    end
    trail[d] = copy
  end
end

-- Walks the trail back into steps: " " both, "-" only in a, "+" only in b, first step first.
local function steps_of(a, b)
  local trail, d = search(a, b)
  local x, y, back = #a, #b, {}
  for edits = d, 1, -1 do
    local k, before = x - y, trail[edits - 1]
    local down = k == -edits or (k ~= edits and before[k - 1] < before[k + 1])
    local from_k = down and k + 1 or k - 1
    local from_x = before[from_k]
    local from_y = from_x - from_k
    while x > from_x and y > from_y do
      back[#back + 1] = { " ", a[x] }
      x, y = x - 1, y - 1
    end
    if down then back[#back + 1] = { "+", b[y] } else back[#back + 1] = { "-", a[x] } end
    x, y = from_x, from_y
  end
  while x > 0 do
    back[#back + 1] = { " ", a[x] }
    x = x - 1
  end
  local steps = {}
  for i = #back, 1, -1 do steps[#steps + 1] = back[i] end
  return steps
end

local function hunk_ranges(steps)
  local ranges = {}
  for i, step in ipairs(steps) do
    if step[1] ~= " " then
      local last = ranges[#ranges]
      if last and i - last.stop <= 2 * CONTEXT then
        last.stop = i
      else
        ranges[#ranges + 1] = { start = i, stop = i }
      end
    end
  end
  for _, range in ipairs(ranges) do
    range.start, range.stop = math.max(1, range.start - CONTEXT), math.min(#steps, range.stop + CONTEXT)
  end
  return ranges
end

local function write_hunk(out, steps, range, at)
  local head, a_count, b_count = #out + 1, 0, 0
  out[head] = ""
  for i = range.start, range.stop do
    local mark, text = steps[i][1], steps[i][2]
    out[#out + 1] = mark .. text
    if mark ~= "+" then a_count = a_count + 1 end
    if mark ~= "-" then b_count = b_count + 1 end
  end
  out[head] = ("@@ -%d,%d +%d,%d @@"):format(at.a, a_count, at.b, b_count)
end

---The unified diff from `a` to `b`; nil when they hold the same lines.
---@param a string
---@param b string
---@param a_name string
---@param b_name string
---@return string?
function M.unified(a, b, a_name, b_name)
  local steps = steps_of(lines_of(a), lines_of(b))
  local ranges = hunk_ranges(steps)
  if #ranges == 0 then return nil end
  local out = { "--- " .. a_name, "+++ " .. b_name }
  local at, done = { a = 1, b = 1 }, 1
  for _, range in ipairs(ranges) do
    for i = done, range.start - 1 do
      if steps[i][1] ~= "+" then at.a = at.a + 1 end
      if steps[i][1] ~= "-" then at.b = at.b + 1 end
    end
    write_hunk(out, steps, range, at)
    done = range.start
  end
  return table.concat(out, "\n") .. "\n"
end

return M

--- Samples to a table: medians, ratios and whether a target was met.
local M = {}

---@param samples number[]
---@param q number    # 0.5 is the median
---@return number
function M.quantile(samples, q)
  local sorted = table.move(samples, 1, #samples, 1, {})
  table.sort(sorted)
  return sorted[math.max(1, math.ceil(q * #sorted))] or 0 / 0
end

local rows = {}

--- Adds a row. `value` is compared with `must` and `stretch` in the sense of `better`.
---@param row { what: string, ours: string, peer?: string, value?: number, unit: string, must?: number, stretch?: number, better: "more"|"less" }
function M.row(row)
  rows[#rows + 1] = row
  io.stderr:write("  ", row.what, "\n")
end

--- A row that is a ratio: how many times faster ours is than a peer's, both medians in microseconds.
function M.faster(what, ours_us, peer, peer_us, must, stretch)
  M.row { what = what, ours = M.us(ours_us), peer = ("%s %s"):format(peer, M.us(peer_us)), value = peer_us / ours_us,
    unit = "x", must = must, stretch = stretch, better = "more" }
end

--- A row that is a ratio of cost: how many times a peer's time ours takes.
function M.at_most(what, ours_us, peer, peer_us, must, stretch)
  M.row { what = what, ours = M.us(ours_us), peer = ("%s %s"):format(peer, M.us(peer_us)), value = ours_us / peer_us,
    unit = "of it", must = must, stretch = stretch, better = "less" }
end

---@param us number
---@return string
function M.us(us)
  if us < 1000 then return ("%.0f us"):format(us) end
  if us < 1e6 then return ("%.2f ms"):format(us / 1000) end
  return ("%.2f s"):format(us / 1e6)
end

local function number(n)
  if n == nil then return "" end
  if n >= 1000 then return ("%.0f"):format(n) end
  return ("%.3g"):format(n)
end

local function verdict(row)
  if not row.must or not row.value then return "" end
  local function meets(target)
    if row.better == "more" then return row.value >= target end
    return row.value <= target
  end
  if row.stretch and meets(row.stretch) then return "stretch" end
  return meets(row.must) and "yes" or "NO"
end

--- The table as Markdown, which reads well in a terminal too.
---@return string
function M.table()
  local cells = { { "measure", "ours", "beside it", "result", "must / stretch", "met" } }
  for _, row in ipairs(rows) do
    local target = row.must and number(row.must) .. (row.stretch and " / " .. number(row.stretch) or "") or ""
    cells[#cells + 1] = { row.what, row.ours, row.peer or "", row.value and number(row.value) .. " " .. row.unit or "", target, verdict(row) }
  end
  local widths = {}
  for _, line in ipairs(cells) do
    for i, cell in ipairs(line) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  local out = {}
  for at, line in ipairs(cells) do
    local padded, rule = {}, {}
    for i, cell in ipairs(line) do
      padded[i] = cell .. (" "):rep(widths[i] - #cell)
      rule[i] = ("-"):rep(widths[i])
    end
    out[#out + 1] = "| " .. table.concat(padded, " | ") .. " |"
    if at == 1 then out[#out + 1] = "| " .. table.concat(rule, " | ") .. " |" end
  end
  return table.concat(out, "\n")
end

return M

--- Pages to look at trajectories with, in any browser: one file that needs nothing beside it and asks nobody.
---
---     local made = assert(ab.render.file("runs/a/7d31...", "page.html"))
---     print(made.trajectories, made.bodies, made.bytes)
---
--- All trajectories are in the page's table; what they said is there for as many as `bodies_mb` has room for, failures
--- first. docs/pages.md tells what is shown.
local bench = require "agentbox.render.bench"
local body = require "agentbox.render.body"
local document = require "agentbox.render.document"
local err = require "agentbox.err"
local figures = require "agentbox.render.figures"
local fs = require "agentbox.sys.fs"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local row = require "agentbox.render.row"
local schema = require "agentbox.schema"
local source = require "agentbox.render.source"

local M = {}

-- So many bodies that find no room, and the page is full.
local MAX_MISSES = 4

local OPTIONS = {
  bodies_mb = { "number", min = 0, max = 512, default = 8 }, model = { "string" }, title = { "string" },
  compare = { "string" },
}

---@class agentbox.RenderOpts
---@field bodies_mb? number   # room for what was said, in MB; default 8
---@field model? string       # only trajectories of this model
---@field title? string       # default: the name of what is rendered
---@field compare? string     # another benchmark's result, which the first one is compared with

---@class agentbox.Rendered
---@field path string
---@field bytes integer
---@field trajectories integer
---@field bodies integer      # of how many there is all to read
---@field damaged integer     # lines that could not be read

-- Which bodies come first: what is broken, what contradicts itself, what failed, the rest.
local function urgency(one)
  if one.reward == nil then return 1 end
  if one.mismatch or one.tamper then return 2 end
  return one.status == "success" and 4 or 3
end

local function by_urgency(rows)
  local order, rank = {}, {}
  for i, one in ipairs(rows) do
    order[i], rank[i] = i, urgency(one)
  end
  table.sort(order, function(a, b)
    if rank[a] ~= rank[b] then return rank[a] < rank[b] end
    return a < b
  end)
  return order
end

-- Writes the bodies that there is room for, each as an element of its own, so that a browser parses what is opened.
local function write_bodies(file, rows, room)
  local used, n, misses = 0, 0, 0
  for _, index in ipairs(by_urgency(rows)) do
    if misses == MAX_MISSES then break end
    local t = source.trajectory(rows[index])
    local text = t and document.data("b" .. index - 1, json.encode(body.of(t, body.EMBEDDED)))
    if not text or used + #text > room then
      misses = misses + 1
    else
      local ok, problem = file:write(text)
      if not ok then return nil, err.new("io", problem) end
      used, n = used + #text, n + 1
    end
  end
  return n
end

local function write_page(file, path, rows, opts)
  local title = opts.title or path:match "([^/]+)/*$" or path
  local page = figures.page(path, rows, { title = title, damaged = opts.damaged, bench = opts.bench })
  local head, foot = document.frame { title = title, page = page, columns = row.columns(rows) }
  local ok, problem = file:write(head)
  if not ok then return nil, err.new("io", problem) end
  local bodies
  bodies, problem = write_bodies(file, rows, opts.bodies_mb * 1e6)
  if not bodies then return nil, problem end
  ok, problem = file:write(foot)
  if not ok then return nil, err.new("io", problem) end
  return bodies
end

-- The page gets its name when it is whole.
local function place_file(out, write)
  local partial = ("%s.%d.partial"):format(out, os_.pid())
  local file <close>, problem = io.open(partial, "wb")
  if not file then return nil, err.new("io", problem) end
  local done
  done, problem = write(file)
  local closed, unclosed = file:close()
  if done and not closed then done, problem = nil, err.new("io", unclosed) end
  if done then
    local ok, bad = fs.rename(partial, out)
    if ok then return done end
    problem = bad
  end
  fs.remove(partial)
  return nil, problem
end

--- Writes the page of whatever holds trajectories: a record, a run's folder, a folder of them, AgentBox's JSON.
---
--- Returns nil, err if there is nothing to show (`notfound`), or it cannot be read or written.
---@async
---@nodiscard
---@param path string
---@param out string
---@param opts? agentbox.RenderOpts
---@return agentbox.Rendered?
---@return agentbox.Err? err
function M.file(path, out, opts)
  opts = schema.options(opts or {}, OPTIONS, "render.file")
  local rows, damaged = source.rows(path, opts.model)
  if not rows then return nil, damaged end
  if #rows == 0 then return nil, err.new("notfound", path .. ": no trajectories to render") end
  opts.damaged = damaged
  local bad
  opts.bench, bad = bench.of(path, opts.compare)
  if bad then return nil, bad end
  local bodies, problem = place_file(out, function(file) return write_page(file, path, rows, opts) end)
  if not bodies then return nil, err.wrap(problem, "cannot write " .. out) end
  local bytes = (fs.stat(out) or {}).size or 0
  return { path = out, bytes = bytes, trajectories = #rows, bodies = bodies, damaged = damaged }
end

return M

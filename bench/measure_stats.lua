--- Statistics of suites: the report of 100,000 attempts, made of rows that are in memory, in CPU seconds.
local ab = require "agentbox"
local report = require "report"
local reports = require "agentbox.suite.report"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local made = dofile(here .. "/../tests/support/attempts.lua")

-- Students whose chance at each task is drawn: rows of every one, and what bench.json says of them.
local function result_of(students, tasks, n)
  local rand, ids, order, all = ab.rand.new(1), {}, {}, {}
  for t = 1, tasks do order[t] = ("task-%05d"):format(t) end
  for m = 1, students do
    local rows = {}
    ids[m], all[m] = "m" .. m, rows
    for t = 1, tasks do
      local chance = rand:float()
      for i = 0, n - 1 do rows[#rows + 1] = made.row(ids[m], order[t], i, rand:float() >= chance and made.FAILED or nil) end
    end
  end
  return made.doc(ids, order, n), all
end

local function row(what, rounds, students, tasks, n)
  local doc, all = result_of(students, tasks, n)
  local seconds = {}
  for i = 1, rounds do
    collectgarbage()
    local began = os.clock()
    reports.build(doc, all)
    seconds[i] = os.clock() - began
  end
  local median = report.quantile(seconds, 0.5)
  report.row { what = what, ours = report.us(median * 1e6), value = median, unit = "s", must = 2, better = "less" }
end

return function(rounds)
  row("report of 100,000 attempts: 1,000 tasks, 100 each", rounds, 1, 1000, 100)
  row("report of 100,000 attempts: 4 students, 2,500 tasks, 10 each", rounds, 4, 2500, 10)
end

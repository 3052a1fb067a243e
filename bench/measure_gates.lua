--- The sandbox gates of a task factory: how much of the processors' time is the tests' own, over tasks of tasks/factory. What is
--- left is ours: making sandboxes, seeding, copying, judging, the engine itself.
local os_ = require "agentbox.sys.os"
local report = require "report"

local SETS = {
  { "Python", { "py_config_layers", "py_template_engine" } }, { "JavaScript", { "js_csv_stream", "js_router" } },
  { "shell", { "sh_backup_prune" } }, { "C", { "c_big_number" } },
}

-- Seconds of a line of the shell's `times`: "1m2.5s 0m0.25s".
local function seconds(line)
  local sum = 0
  for minutes, rest in line:gmatch "(%d+)m([%d.]+)s" do sum = sum + tonumber(minutes) * 60 + tonumber(rest) end
  return sum
end

-- The tests' CPU seconds, everybody's, commands, wall seconds.
local function once(names)
  local words = {}
  for i, name in ipairs(names) do words[i] = "tasks/factory/" .. name end
  local pipe <close> = assert(io.popen(("/proc/%d/exe script bench/gates_once.lua %s 2>&1; times"):format(os_.pid(), table.concat(words, " "))))
  local said = pipe:read "a"
  local own, commands, wall = said:match "([%d.]+) (%d+) ([%d.]+)\n"
  local children = said:match "[^\n]*\n([^\n]*)\n$"
  assert(own and children, said)
  return tonumber(own), seconds(children), tonumber(commands), tonumber(wall)
end

return function(rounds)
  for _, set in ipairs(SETS) do
    local shares, walls, commands = {}, {}, 0
    for round = 1, math.min(rounds, 3) do
      local own, all, n, wall = once(set[2])
      shares[round], walls[round], commands = own / all * 100, wall, n
    end
    local share = report.quantile(shares, 0.5)
    report.row { what = ("sandbox gates in %s: the tests' share of the CPU time (tasks: %d, commands: %d)"):format(set[1], #set[2], commands),
      ours = ("%.1f %%, %.1f s"):format(share, report.quantile(walls, 0.5)), value = share, unit = "%", must = 90, better = "more" }
  end
end

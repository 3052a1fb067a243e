--- `agentbox ps`: the runs of this machine, how far each is, and which can be gone on with.
local M = {
  name = "ps",
  summary = "list the runs of this machine",
  description = "Lists the runs that go on, and those that were killed and can be resumed. With DIR: every run in that "
      .. "folder, the ended ones too.",
  arguments = { { "dir", "folders of runs, as --out made them", args = "*" } },
  options = { { "--json", "print one JSON object a line" } },
}

local SILENT_S = 15 -- an engine tells every two seconds how far it is, unless the disk is full or it was stopped

local function state_of(run)
  local told = run.pid and run.progress and tonumber(run.progress.t)
  local silent_s = told and require "agentbox.time".now() - told or 0
  if silent_s < SILENT_S then return run.state end
  return ("%s, silent for %s"):format(run.state, require "agentbox.cli._summary".duration(silent_s))
end

local function row(run)
  local out, summary = require "agentbox.cli._out", require "agentbox.cli._summary"
  local progress = run.progress or {}
  local done = progress.rollouts and ("%d%s"):format(progress.rollouts, progress.total and "/" .. math.tointeger(progress.total) or "") or "-"
  return {
    out.line(run.run):sub(1, 36), state_of(run), run.pid and tostring(run.pid) or "-", summary.duration(require "agentbox.cli._runs".age_s(run)),
    done, tostring(progress.solved or "-"), tostring(progress.unscored or "-"), out.line(run.run_dir),
  }
end

local HEAD = { "RUN", "STATE", "PID", "AGE", "ENDED", "SOLVED", "UNSCORED", "FOLDER" }

local function table_of(rows)
  local widths = {}
  for _, cells in ipairs(rows) do
    for i, cell in ipairs(cells) do widths[i] = math.max(widths[i] or 0, utf8.len(cell) or #cell) end
  end
  for _, cells in ipairs(rows) do
    local parts = {}
    for i, cell in ipairs(cells) do
      parts[i] = i == #cells and cell or cell .. (" "):rep(widths[i] - (utf8.len(cell) or #cell))
    end
    io.stdout:write(table.concat(parts, "  "), "\n")
  end
end

function M.run(args)
  local runs = require "agentbox.cli._runs".list(args.dir or {})
  if args.json then
    local json = require "agentbox.json"
    for _, run in ipairs(runs) do io.stdout:write(json.encode(run), "\n") end
    return 0
  end
  local rows = { HEAD }
  for _, run in ipairs(runs) do rows[#rows + 1] = row(run) end
  table_of(rows)
  return 0
end

return M

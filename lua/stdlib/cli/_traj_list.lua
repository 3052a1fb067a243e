--- `agentbox traj list PATH`.
local json = require "agentbox.json"
local out = require "agentbox.cli._out"
local ranks = require "agentbox.export.ranks"
local read = require "agentbox.store.read"
local rows = require "agentbox.store.rows"
local summary = require "agentbox.store.summary"

local M = {}

local FIELDS = {
  "id", "attempt", "task", "grp", "status", "final_status", "stop", "class", "scored", "reward", "independent", "version_min",
  "version_max", "started", "finished",
}

local function wanted(row, args)
  return (not args.status or row.final_status == args.status) and (not args.class or row.class == args.class)
      and (not args.task or row.task == args.task)
end

local function put_row(row, args)
  if args.json then
    local object = json.object {}
    for _, name in ipairs(FIELDS) do
      if row[name] ~= nil then object[name == "grp" and "group" or name] = row[name] end
    end
    io.stdout:write(json.encode(object), "\n")
    return
  end
  local class, task = row.class and " class=" .. row.class or "", row.task and "  task=" .. out.line(row.task) or ""
  local alone = row.independent and (" (alone %s)"):format(out.number(row.independent)) or ""
  io.stdout:write(("%s  %s  reward=%s%s  %s%s%s\n"):format(out.line(row.id), row.final_status or row.status,
    out.number(row.reward), alone, row.stop, class, task))
end

-- What its group's ranking gave it, as in an export.
local function apply(rank, row)
  if not rank then return end
  row.reward, row.scored, row.independent = rank.reward or nil, rank.reward ~= false, rank.independent
end

-- Gives every row of a file to `take`, until it returns false.
local function each_row(file, take)
  if not file.run_dir then return read.visit(file.path, function(t) return take(summary.of(t.line)) end) end
  local known = rows.open(file.run_dir)
  for row in known:each() do
    if take(row) == false then break end
  end
  known:close()
  return true
end

--- Lists, and gives the exit status.
---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.run(args)
  local files, problem = read.files(args.path)
  if not files then return nil, problem end
  local by_id, bad = ranks.read { args.path }
  if bad then return nil, bad end
  local n, last = 0, nil
  for _, file in ipairs(files) do
    local ok = true
    if not file.run_dir or file.run_dir ~= last then
      ok, problem = each_row(file, function(row)
        if args.limit and n >= args.limit then return false end
        if not wanted(row, args) then return true end
        n = n + 1
        apply(by_id and by_id[row.id], row)
        put_row(row, args)
        return true
      end)
    end
    if not ok then return nil, problem end
    last = file.run_dir
  end
  return 0
end

return M

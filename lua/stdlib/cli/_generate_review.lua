--- `agentbox generate review`: people decide.
local clean = require "agentbox.cli._out".line
local review = require "agentbox.generate.review"

local M = {}

local LIMIT = 200

local function state_of(item)
  if item.decision then return item.decision .. "ed" end
  return "undecided"
end

local function wanted(args)
  return function(item)
    if args.state == "undecided" then return item.decision == nil end
    if args.state == "accepted" then return item.decision == "accept" end
    if args.state == "rejected" then return item.decision == "reject" end
    return true
  end
end

local function collect(dir, take)
  local items = {}
  local ok, err = review.each(dir, function(item)
    if take(item) then items[#items + 1] = item end
  end)
  if not ok then return nil, err end
  return items
end

-- AgentBox's row of a review queue.
local function row_of(item)
  local json, schema = require "agentbox.json", require "agentbox.schema"
  local judge, static, metadata = item.report.judge or {}, item.report.static or {}, item.task.metadata
  local row = json.object { name = item.name, task_id = item.task.task_id, path = item.task.dir, score = judge.score or json.null }
  row.reasons, row.accept_hint = judge.reasons or json.array {}, item.accepted
  row.errors, row.warnings = json.array { item.reason }, static.warnings or json.array {}
  row.files = json.array(schema.names(item.task.files))
  row.metadata = json.object {}
  for _, key in ipairs { "difficulty", "tags", "language", "generator_model", "heuristic_label", "signature_hash" } do
    row.metadata[key] = metadata[key]
  end
  row.stage, row.decision, row.decided = item.stage, item.decision or json.null, item.decided and item.decided.reason
  return row
end

local function print_item(item)
  local judge = item.report.judge
  local words = { item.name, item.accepted and "passed" or "failed " .. tostring(item.stage), state_of(item) }
  if judge and judge.score then words[#words + 1] = ("score %.2f"):format(judge.score) end
  if item.reason then words[#words + 1] = item.reason end
  if item.decided and item.decided.reason then words[#words + 1] = "because: " .. item.decided.reason end
  for i, word in ipairs(words) do words[i] = clean(word) end
  io.stdout:write(table.concat(words, "  "), "\n")
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.list(args)
  local take, counts, json = wanted(args), { undecided = 0, accepted = 0, rejected = 0 }, require "agentbox.json"
  local ok, err = review.each(args.dir, function(item)
    counts[state_of(item)] = counts[state_of(item)] + 1
    if not take(item) then return end
    if args.json then io.stdout:write(json.encode(row_of(item)), "\n") else print_item(item) end
  end)
  if not ok then return nil, err end
  if not args.json then
    io.stdout:write(("%d undecided, %d accepted, %d rejected\n"):format(counts.undecided, counts.accepted, counts.rejected))
  end
  return 0
end

local function print_files(title, tree)
  local out = require "agentbox.cli._out"
  for _, path in ipairs(require "agentbox.schema".names(tree)) do
    io.stdout:write(("--- %s %s\n"):format(title, clean(path)), (out.clean(tree[path].bytes):gsub("\n?$", "\n")))
  end
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.show(args)
  local item, err = review.find(args.dir, args.name)
  if not item then return nil, err end
  local json, out = require "agentbox.json", require "agentbox.cli._out"
  if args.json then
    local row = row_of(item)
    row.report, row.task = item.report, require "agentbox.task".to_inline(item.task)
    io.stdout:write(json.encode(row, { indent = 2 }), "\n")
    return 0
  end
  print_item(item)
  io.stdout:write(out.clean(item.task.description), "\n")
  print_files("starter", item.task.files)
  print_files("hidden", item.task.hidden)
  print_files("solution", item.task.solution)
  for _, name in ipairs(require "agentbox.schema".names(item.report)) do
    io.stdout:write("gate ", clean(name), ": ", clean(json.encode(item.report[name])), "\n")
  end
  return 0
end

---@param decision "accept"|"reject"
---@return fun(args: table): integer?, agentbox.Err?
function M.deciding(decision)
  return function(args)
    local ok, err = review.decide(args.dir, args.names, decision, args.reason)
    if not ok then
      if err.code == "badarg" then err = { code = "usage", msg = "generate: " .. err.msg .. ": --reason TEXT" } end
      return nil, err
    end
    for _, name in ipairs(args.names) do io.stdout:write(decision, "ed ", clean(name), "\n") end
    return 0
  end
end

-- What needs a person most comes first: rejected by a gate and undecided, then undecided, then the rest.
local function by_need(items)
  local function rank(item) return (item.decision and 2 or 0) + (item.accepted and 1 or 0) end
  local place = {}
  for i, item in ipairs(items) do place[item] = i end
  table.sort(items, function(a, b)
    if rank(a) ~= rank(b) then return rank(a) < rank(b) end
    return place[a] < place[b]
  end)
  return items
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.html(args)
  args.out = args.out or "review.html"
  local items, err = collect(args.dir, wanted(args))
  if not items then return nil, err end
  local shown = table.move(by_need(items), 1, math.min(#items, args.limit or LIMIT), 1, {})
  local language = require "agentbox.generate.language"
  local html = require "agentbox.generate.page".html(shown, { dir = args.dir, left_out = #items - #shown, is_test = function(item)
    local found = language.find(tostring(item.task.metadata.language or "python"))
    return found and found.is_test or language.in_tests
  end })
  local ok
  ok, err = require "agentbox.fs".write(args.out, html)
  if not ok then return nil, err end
  io.stdout:write(("%d of %d tasks → %s\n"):format(#shown, #items, clean(args.out)))
  return 0
end

---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.save(args)
  args.out = args.out or "generated/set"
  local tasks, err = review.set(args.dir, { undecided = args.undecided })
  if not tasks then return nil, err end
  local ok
  ok, err = review.save(tasks, args.out)
  if not ok then return nil, err end
  io.stdout:write(("%d tasks → %s\n"):format(#tasks, clean(args.out)))
  return 0
end

return M

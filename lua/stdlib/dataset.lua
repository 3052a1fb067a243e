--- Tasks in bulk: many in one file, chosen by what their metadata say, and in the order of a curriculum.
---
---     local tasks = assert(ab.dataset.load "tasks.jsonl")
---     local easy = ab.dataset.filter(tasks, { difficulty = { "easy", "medium" }, tags = "lists", max_steps = 10 })
---     ab.runner.start { tasks = ab.dataset.curriculum(easy, 200, { seed = 1 }), ... }
---
--- A file of lines (`.jsonl`) has a task.json on each line; a table (`.csv`) a task in each row, with the fields as columns:
--- `task_id`, `description`, `verifier.command`, `metadata.difficulty`, `starter_files.src/acc.py`. What is below the first dot is
--- a member of that field. An empty cell says nothing; one that begins with `[` or `{` is JSON where the field is no text.
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local rand = require "agentbox.rand"
local schema = require "agentbox.schema"
local task = require "agentbox.task"

local M = { MAX_LINE = 64 << 20 }

local ORDER = { "easy", "medium", "hard" }

--- Some programs begin a text with it.
local BOM = "^\u{FEFF}"

local function bad(path, n, msg) return nil, err.new("task", ("%s:%d: %s"):format(path, n, msg)) end

-- ---------------------------------------------------------------- lines

local function of_lines(file, path)
  local n = 0
  return function()
    for line in file:lines "L" do
      n = n + 1
      if n == 1 then line = line:gsub(BOM, "") end
      if line:find "%S" then
        if #line > M.MAX_LINE then return bad(path, n, "the line is too long") end
        local fields, problem = json.decode(line)
        if not json.is_object(fields) then return bad(path, n, problem and problem.msg or "not a JSON object") end
        return fields, n
      end
    end
  end
end

-- ---------------------------------------------------------------- tables

-- One record of a CSV file (RFC 4180): a quoted cell may hold commas, quotes and line ends.
local function next_record(file, path, at)
  local cells, cell, quoted, first = {}, {}, false, nil
  for line in file:lines "L" do
    at.n = at.n + 1
    first = first or at.n
    local i, text = 1, line:gsub("\r?\n$", "")
    while true do
      local stop = quoted and text:find('"', i, true) or not quoted and text:find('[",]', i) or nil
      if not stop then
        cell[#cell + 1] = text:sub(i)
        break
      end
      cell[#cell + 1] = text:sub(i, stop - 1)
      local char = text:sub(stop, stop)
      i = stop + 1
      if char == "," then
        cells[#cells + 1], cell = table.concat(cell), {}
      elseif quoted and text:sub(i, i) == '"' then
        cell[#cell + 1], i = '"', i + 1
      else
        quoted = not quoted
      end
    end
    if not quoted then
      cells[#cells + 1] = table.concat(cell)
      return cells, first
    end
    cell[#cell + 1] = "\n"
  end
  if quoted then return bad(path, first, "a quoted cell without its end") end
end

local TEXTS = { task_id = true, description = true, system_prompt_extra = true, image = true, starter_files = true, env = true }

local function value_of(field, member, text)
  if TEXTS[field] or field == "verifier" and (member == "command" or member == "path" or member == "type") then return text end
  if text:find "^[%[{]" then
    local value = json.decode(text)
    if value ~= nil then return value end
  end
  if text == "true" or text == "false" then return text == "true" end
  return tonumber(text) or text
end

local function row_of(names, cells)
  local out = json.object {}
  for i, name in ipairs(names) do
    local text = cells[i]
    if text and text ~= "" then
      local field, member = name:match "^([^.]+)%.(.+)$"
      field = field or name
      local value = value_of(field, member, text)
      if member then
        out[field] = out[field] or json.object {}
        out[field][member] = value
      else
        out[field] = value
      end
    end
  end
  return out
end

-- The names of the columns; a column without a name, or two of one name, would lose a cell unseen.
local function columns_of(cells, path, n)
  cells[1] = cells[1]:gsub(BOM, "")
  local seen = {}
  for i, name in ipairs(cells) do
    if name == "" then return bad(path, n, ("column %d has no name"):format(i)) end
    if seen[name] then return bad(path, n, ("two columns are called %s"):format(name)) end
    seen[name] = true
  end
  return cells
end

local function of_table(file, path)
  local at, names = { n = 0 }, nil
  return function()
    local cells, n = next_record(file, path, at)
    if not names and cells then
      names, n = columns_of(cells, path, n)
      if not names then return nil, n end
      cells, n = next_record(file, path, at)
    end
    while cells and #cells == 1 and cells[1] == "" do cells, n = next_record(file, path, at) end
    if not cells then return nil, n end
    if #cells ~= #names then return bad(path, n, ("%d cells, but %d columns"):format(#cells, #names)) end
    return row_of(names, cells), n
  end
end

local READERS = { jsonl = of_lines, csv = of_table }

-- ---------------------------------------------------------------- reading and writing

--- A function that gives the next task of a file, and nil at the end: what `tasks` of a run takes, so that nothing is read before
--- it is wanted. `make` may turn each line's or row's fields into those of a task, or into nil to pass it over.
---
--- Returns nil, err when the file cannot be opened. A bad line raises `task`, with its place.
---@async
---@param path string                       # .jsonl or .csv
---@param make? fun(fields: table): table?
---@return (fun(): agentbox.Task?)? next_task
---@return agentbox.Err? err
function M.each(path, make)
  local reader = READERS[path:match "%.(%w+)$" or ""]
  if not reader then return nil, err.new("badarg", path .. ": a file of tasks ends in .jsonl or .csv") end
  local stat, problem = fs.stat(path)
  if not stat then return nil, problem end
  if stat.type ~= "file" then return nil, err.new("invalid", ("%s is a %s, not a file"):format(path, stat.type)) end
  local file, msg = io.open(path, "rb")
  if not file then return nil, err.new("io", msg) end
  local next_fields = reader(file, path)
  return function()
    while file do
      local fields, n = next_fields()
      if fields == nil then
        file:close()
        file = nil
        if err.is(n) then error(n, 0) end
        return nil
      end
      if make then fields = make(fields) end
      if fields then
        local found, wrong = task.resolve(fields)
        if not found then error(err.wrap(wrong, ("%s:%d"):format(path, n)), 0) end
        return found
      end
    end
  end
end

--- All tasks of a file, or of a folder; an id that comes twice is an error.
---@async
---@param path string
---@param make? fun(fields: table): table?
---@return agentbox.Task[]? tasks
---@return agentbox.Err? err
function M.load(path, make)
  if (fs.stat(path) or {}).type == "dir" then return task.dir(path) end
  local next_task, problem = M.each(path, make)
  if not next_task then return nil, problem end
  local list, seen = {}, {}
  local ok, raised = pcall(function()
    for one in next_task do
      if seen[one.task_id] then error(err.new("task", ('%s: task_id "%s" comes twice'):format(path, one.task_id)), 0) end
      seen[one.task_id], list[#list + 1] = true, one
    end
  end)
  if ok then return list end
  if not err.is(raised) then error(raised, 0) end
  return nil, raised
end

--- Writes tasks as lines, each as `ab.task.to_table` gives it; hidden files and solutions, which that leaves out, are refused.
---@async
---@param path string
---@param tasks agentbox.Task[]
---@return boolean? ok
---@return agentbox.Err? err
function M.save(path, tasks)
  local lines = {}
  for i, one in ipairs(tasks) do
    local fields = task.to_table(one)
    for path_of in pairs(one.files) do
      if fields.starter_files[path_of] == nil then
        return nil, err.new("task", ("%s: %s is no text of mode 0644: write it with ab.task.save"):format(one.task_id, path_of))
      end
    end
    if next(one.hidden) or next(one.solution) then
      return nil, err.new("task", one.task_id .. ": has hidden files or a solution: write it with ab.task.save")
    end
    lines[i] = json.encode(fields) .. "\n"
  end
  return fs.write(path, table.concat(lines))
end

-- ---------------------------------------------------------------- choosing

local FILTER = {
  difficulty = { "string|list" }, tags = { "string|list" }, all_tags = { "boolean" }, domain = { "string" }, language = { "string" },
  min_steps = { "number" }, max_steps = { "number" }, where = { "function" },
}

local function set_of(value)
  if value == nil then return nil end
  local out = {}
  for _, one in ipairs(type(value) == "table" and value or { value }) do out[one] = true end
  return out
end

local function has_tags(given, wanted, all)
  if not wanted or next(wanted) == nil then return true end
  local have = set_of(given) or {}
  for tag in pairs(wanted) do
    if have[tag] and not all then return true end
    if not have[tag] and all then return false end
  end
  return all == true
end

local function has_steps(steps, opts)
  if not opts.min_steps and not opts.max_steps then return true end
  if steps == nil or steps == json.null then return false end
  local n = tonumber(steps)
  if not n then error("dataset.filter: estimated_steps is no number: " .. tostring(steps), 3) end
  return n >= (opts.min_steps or -math.huge) and n <= (opts.max_steps or math.huge)
end

--- The tasks whose metadata are as wanted, in their order. One without `estimated_steps` fits no bound of steps.
---@param tasks agentbox.Task[]
---@param opts { difficulty?: string|string[], tags?: string|string[], all_tags?: boolean, domain?: string, language?: string, min_steps?: number, max_steps?: number, where?: fun(task: agentbox.Task): boolean }
---@return agentbox.Task[]
function M.filter(tasks, opts)
  opts = schema.options(opts, FILTER, "dataset.filter")
  local difficulties, tags, out = set_of(opts.difficulty), set_of(opts.tags), {}
  for _, one in ipairs(tasks) do
    local meta = one.metadata or {}
    if (not difficulties or difficulties[meta.difficulty]) and (not opts.domain or meta.domain == opts.domain)
        and (not opts.language or meta.language == opts.language) and has_tags(meta.tags, tags, opts.all_tags)
        and has_steps(meta.estimated_steps, opts) and (not opts.where or opts.where(one)) then
      out[#out + 1] = one
    end
  end
  return out
end

--- Tasks by their difficulty: always `easy`, `medium`, `hard` and `unknown`, and whatever else there is.
---@param tasks agentbox.Task[]
---@return table<string, agentbox.Task[]>
function M.by_difficulty(tasks)
  local out = { easy = {}, medium = {}, hard = {}, unknown = {} }
  for _, one in ipairs(tasks) do
    local level = (one.metadata or {}).difficulty
    if type(level) ~= "string" then level = "unknown" end
    out[level] = out[level] or {}
    table.insert(out[level], one)
  end
  return out
end

--- n tasks, the easy ones first: each level in an order of chance, then whatever has no level of the order. The same seed gives
--- the same tasks.
---@param tasks agentbox.Task[]
---@param n integer
---@param opts? { order?: string[], seed?: integer }
---@return agentbox.Task[]
function M.curriculum(tasks, n, opts)
  opts = schema.options(opts, { order = { "list", of = { "string" }, default = ORDER }, seed = { "integer", default = 0 } }, "dataset.curriculum")
  local random, groups, out, rest = rand.new(opts.seed), M.by_difficulty(tasks), {}, {}
  local listed = set_of(opts.order)
  for _, one in ipairs(tasks) do
    local level = (one.metadata or {}).difficulty
    if not listed[type(level) == "string" and level or "unknown"] then rest[#rest + 1] = one end
  end
  local function take(pool)
    random:shuffle(pool)
    for i = 1, math.min(#pool, n - #out) do out[#out + 1] = pool[i] end
  end
  for _, level in ipairs(opts.order) do take(groups[level] or {}) end
  take(rest)
  return out
end

return M

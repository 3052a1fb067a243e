--- A scripted model that solves a task from its solution/ folder, the way a patient person would: it reads what is
--- there, edits or writes file by file, runs the tests and says that it is done. No server is needed.
local ab = require "agentbox"

local M = {}

local function call(name, arguments)
  return { name = name, arguments = arguments }
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]*\n?" do
    if line ~= "" then lines[#lines + 1] = line end
  end
  return lines
end

local function occurrences(text, part)
  local n, at = 0, 1
  while true do
    local from, to = text:find(part, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end

--- The lines in which two texts differ, as what edit_file wants; nil when that text is not unique in the old one.
local function edit_between(old, new)
  local a, b = lines_of(old), lines_of(new)
  local head, tail = 0, 0
  while head < math.min(#a, #b) and a[head + 1] == b[head + 1] do head = head + 1 end
  while tail < math.min(#a, #b) - head and a[#a - tail] == b[#b - tail] do tail = tail + 1 end
  local old_part = table.concat(a, "", head + 1, #a - tail)
  if old_part == "" or occurrences(old, old_part) ~= 1 then return nil end
  return old_part, table.concat(b, "", head + 1, #b - tail)
end

local function change(task, path, content)
  local there = task.files[path]
  if there then
    local old_string, new_string = edit_between(there.bytes, content)
    if old_string then return call("edit_file", { path = path, old_string = old_string, new_string = new_string }) end
  end
  return call("write_file", { path = path, content = content })
end

--- What a wrong answer writes: the file as it was given, with a remark.
local function unsolved(task, path)
  local there = task.files[path]
  return (there and there.bytes or "") .. "# left as it was\n"
end

--- The turns of a model that solves `task`, or with `broken` goes through the motions and solves nothing.
---@param task agentbox.Task
---@param broken? boolean
---@return table turns
function M.turns(task, broken)
  local paths, reads, turns = {}, {}, {}
  for path in pairs(task.solution) do paths[#paths + 1] = path end
  table.sort(paths)
  for _, path in ipairs(paths) do
    if task.files[path] then reads[#reads + 1] = call("read_file", { path = path }) end
  end
  if #reads > 0 then turns[#turns + 1] = { content = "Let me read what is there.", tool_calls = reads } end
  for _, path in ipairs(paths) do
    local content = broken and unsolved(task, path) or task.solution[path].bytes
    turns[#turns + 1] = { tool_calls = { change(task, path, content) } }
  end
  turns[#turns + 1] = { content = "Now the tests.", tool_calls = { call("run_tests", {}) } }
  turns[#turns + 1] = "Done."
  return turns
end

---@param task agentbox.Task
---@param broken? boolean
---@return agentbox.Model
function M.model(task, broken)
  return ab.model.scripted(M.turns(task, broken))
end

return M

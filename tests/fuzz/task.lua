--- The task loader over a folder that exists only in the input of fuzz_task.c.
---
--- An input is entries between bytes 0x1e. The first is the task file: `j` or `y` (JSON or YAML) and its text. Each other one
--- is PATH, 0x1f, a kind and bytes: `f` a file, `x` an executable, `l` a link to these bytes, `d` a folder, `p` a pipe.
---
--- Whatever the bytes are: a task or an error of code `task` that names a file, never a raise. A task has no path that leads
--- out of it, and saved and loaded again it is the same.
local err = require "agentbox.err"
local specs = require "agentbox.backends._spec"

local ROOT = "/t"

-- ---------------------------------------------------------------- the folder

local nodes

local function parent(path) return path:match "^(.*)/[^/]*$" end

local function add(path, node)
  local at = parent(path)
  while at and at ~= "" and not nodes[at] do
    nodes[at] = { type = "dir", mode = 493, bytes = "" }
    at = parent(at)
  end
  nodes[path] = node
end

-- Follows links as the kernel does, the last one too if `follow`.
local function resolve(path, follow, depth)
  if depth > 40 then return nil, err.new("io", "too many levels of symbolic links") end
  local at, parts = "", {}
  for part in path:gmatch "[^/]+" do parts[#parts + 1] = part end
  for i, part in ipairs(parts) do
    if part == ".." then
      at = parent(at) or ""
    elseif part ~= "." then
      local parent_node = at ~= "" and nodes[at]
      if at ~= "" and (not parent_node or parent_node.type ~= "dir") then return nil, err.new("notfound", "no such file") end
      local node = nodes[at .. "/" .. part]
      if node and node.type == "link" and (follow or i < #parts) then
        local target, problem = node.bytes
        if target == "" or target:find "\0" then return nil, err.new("notfound", "no such file") end
        at, problem = resolve(target:sub(1, 1) == "/" and target or at .. "/" .. target, true, depth + 1)
        if not at then return nil, problem end
      else
        at = at .. "/" .. part
      end
    end
  end
  return at == "" and "/" or at
end

local function find(path, follow)
  if path:find "\0" then error "a path with a zero byte" end -- as the primitive does
  local at, problem = resolve(path, follow, 0)
  if not at then return nil, problem end
  local node = at == "/" and { type = "dir", mode = 493, bytes = "" } or nodes[at]
  if not node then return nil, err.new("notfound", "no such file") end
  return node, nil, at
end

local fs = {}

local function stat(path, follow)
  local node, problem = find(path, follow)
  return node and { type = node.type, size = #node.bytes, mode = node.mode }, problem
end

function fs.stat(path) return stat(path, true) end
function fs.lstat(path) return stat(path, false) end

function fs.realpath(path)
  local _, problem, at = find(path, true)
  return at, problem
end

function fs.read(path, max)
  local node, problem = find(path, true)
  if not node then return nil, problem end
  if node.type ~= "file" then error("reading a " .. node.type) end
  if #node.bytes > max then return nil, err.new("toobig", "too large") end
  return node.bytes
end

function fs.list(path)
  local node, problem, at = find(path, true)
  if not node then return nil, problem end
  if node.type ~= "dir" then return nil, err.new("invalid", "not a directory") end
  local out = {}
  for other, entry in pairs(nodes) do
    if parent(other) == at then out[#out + 1] = { name = other:match "[^/]*$", type = entry.type } end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

function fs.mkdir(path)
  if not nodes[path] then add(path, { type = "dir", mode = 493, bytes = "" }) end
  return true
end

function fs.write(path, bytes, opts)
  add(path, { type = "file", bytes = bytes, mode = opts and opts.mode or 420 })
  return true
end

package.loaded["agentbox.fs"] = fs
local task = require "agentbox.task"

-- ---------------------------------------------------------------- one input

local KINDS = { f = "file", x = "file", l = "link", d = "dir", p = "fifo" }

local function lay_out(input)
  nodes = {}
  local entries = {}
  for entry in (input .. "\x1e"):gmatch "([^\x1e]*)\x1e" do entries[#entries + 1] = entry end
  for i = 2, #entries do
    local path, kind, bytes = entries[i]:match "^([^\x1f\0]+)\x1f(.)(.*)$"
    path = path and path:gsub("/+", "/"):gsub("^/", ""):gsub("/$", "")
    local usable = path and path ~= "" and KINDS[kind] and not ("/" .. path .. "/"):find "/%.%.?/"
    if usable then add(ROOT .. "/" .. path, { type = KINDS[kind], bytes = bytes, mode = kind == "x" and 493 or 420 }) end
  end
  add(ROOT .. (entries[1]:sub(1, 1) == "y" and "/task.yaml" or "/task.json"), { type = "file", mode = 420, bytes = entries[1]:sub(2) })
end

local function check_error(problem)
  assert(err.is(problem), "no error value")
  assert(problem.code == "task" or problem.code == "io" or problem.code == "notfound", problem.code .. ": " .. problem.msg)
  assert(type(problem.msg) == "string" and #problem.msg < 100000, "a message without an end")
end

local function check_paths(tree)
  for path, file in pairs(tree) do
    assert(path ~= "" and path:sub(1, 1) ~= "/" and not path:find "\0", path)
    assert(not ("/" .. path .. "/"):find "/%.%.?/" and not path:find "//", path)
    assert(type(file.bytes) == "string" and math.type(file.mode) == "integer" and file.mode <= 511, path)
    assert(file.bytes ~= "SECRET", "a file from outside the folder")
  end
end

local function check_task(found)
  assert(found.hash:find "^sha256:%x+$" and #found.hash == 71, found.hash)
  assert(found.task_id ~= "" and utf8.len(found.task_id) and not found.task_id:find "%c")
  for _, tree in ipairs { "files", "hidden", "solution" } do check_paths(found[tree]) end
  -- A sandbox takes what it says.
  local limits = {}
  for name, value in pairs(found.limits or {}) do limits[name] = name ~= "network_disabled" and value or nil end
  assert(specs.check { image = found.image, limits = limits, env = found.env })
  for _, command in ipairs(found.setup_commands) do assert(not command:find "\0") end
  assert(not (found.verifier.command or ""):find "\0")
  nodes = {}
  assert(task.save(found, "/saved"))
  local again, problem = task.load "/saved"
  assert(again, problem and problem.msg)
  assert(again.hash == found.hash, "saved and loaded it is another task")
end

return function(input)
  lay_out(input)
  add("/outside", { type = "file", bytes = "SECRET", mode = 420 })
  local found, problem = task.load(ROOT)
  if found then check_task(found) else check_error(problem) end
end

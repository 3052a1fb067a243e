--- `agentbox task`: tasks from and to other forms.
local out = require "agentbox.cli._out"

local M = {
  name = "task",
  summary = "import and export tasks in Harbor's form",
}

local function usage(msg) return nil, { code = "usage", msg = msg } end

local function say(text) io.stderr:write("agentbox: task: ", out.line(text), "\n") end

-- The folder itself, or those in it that are tasks of a form.
local function folders(path, is)
  local fs = require "agentbox.sys.fs"
  if is(path) then return { path } end
  local entries, err = fs.list(path)
  if not entries then return nil, err end
  local found = {}
  for _, entry in ipairs(entries) do
    if entry.type == "dir" and is(path .. "/" .. entry.name) then found[#found + 1] = path .. "/" .. entry.name end
  end
  if #found == 0 then return usage(path .. ": no task of Harbor's form in this folder") end
  return found
end

local function import_one(dir, args)
  local harbor, task_ = require "agentbox.harbor", require "agentbox.task"
  local task, err = harbor.load(dir, {
    backend = args.backend, network = args.build_network, on_warning = say,
    on_output = args.verbose and function(text) io.stderr:write(out.clean(text)) end or nil,
  })
  if not task then return nil, err end
  local target = args.out .. "/" .. task_.safe_name(task.task_id)
  if require "agentbox.sys.fs".stat(target) then return usage(target .. ": is there already") end
  local ok
  ok, err = task_.save(task, target)
  if not ok then return nil, err end
  io.stdout:write(out.line(target), "\n")
  return true
end

local function import(args)
  local found, err = folders(args.path:gsub("(.)/+$", "%1"), require "agentbox.harbor".is)
  if not found then return nil, err end
  for _, dir in ipairs(found) do
    local ok
    ok, err = import_one(dir, args)
    if not ok then return nil, err end
  end
  return 0
end

local function export(args)
  local tasks, err = require "agentbox.task".dir(args.path)
  if not tasks then return nil, err end
  local harbor, safe_name = require "agentbox.harbor", require "agentbox.task".safe_name
  for _, task in ipairs(tasks) do
    local target = args.out .. "/" .. safe_name(task.task_id)
    local lost
    lost, err = harbor.save(task, target, { image = args.image })
    if not lost then return nil, err end
    if #lost > 0 then say(("%s: has no place in Harbor's form: %s"):format(task.task_id, table.concat(lost, ", "))) end
    io.stdout:write(out.line(target), "\n")
  end
  return 0
end

M.commands = {
  {
    name = "import", summary = "make tasks of ours of Harbor's",
    description = "PATH is a task folder with a task.toml, or a folder of such. Each is written to OUT/NAME, its image is built or "
        .. "pulled. `agentbox run` takes a Harbor task as it is, too.",
    arguments = { { "path", "a folder" } },
    options = {
      { "-o --out", "DIR", "where they go", default = "tasks" },
      { "--backend", "NAME", "whose images: native, docker or podman", default = "native" },
      { "--build-network", "NAME", "of a Dockerfile's commands: full or none", default = "full" },
      { "--verbose", "show what building prints" },
    },
    run = import,
  },
  {
    name = "export", summary = "write tasks in Harbor's form",
    description = "PATH is a task or a folder of tasks; each is written to OUT/NAME, which must not be there. What Harbor's form has "
        .. "no place for is said.",
    arguments = { { "path", "a task or a folder of tasks" } },
    options = {
      { "-o --out", "DIR", "where they go", default = "harbor" },
      { "--image", "NAME", "what the Dockerfiles begin with; the task's image, or one for its language, when nothing is said" },
    },
    run = export,
  },
}

return M

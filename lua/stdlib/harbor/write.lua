--- harbor/write.lua: our tasks in Harbor's form.
---
---     task.toml, instruction.md
---     environment/Dockerfile   the image, the starter's files at the workspace, the setup commands
---     tests/test.sh            puts the protected files back, takes planted ones away, runs the verifier's command
---     tests/files/             the protected and the hidden files
---     solution/solve.sh        lays solution/files/ over the workspace
---
--- What a fresh sandbox does for our verifiers cannot be said in this form: the tests run where the agent worked.
local command_line = require "agentbox.verify.command_line"
local err = require "agentbox.err"
local fs = require "agentbox.fs"
local glob = require "agentbox.glob"
local json = require "agentbox.json"
local pytest = require "agentbox.verifiers.pytest"
local protect = require "agentbox.verify.protect"
local schema = require "agentbox.schema"
local shape = require "agentbox.task.shape"
local toml = require "agentbox.toml"

local M = {}

local DEBIAN = { name = "debian:bookworm-slim" }
-- What a Dockerfile begins with, when neither the task nor the caller says.
local BASES = {
  python = { name = "python:3.12-slim-bookworm", run = "pip install --no-cache-dir pytest" },
  javascript = { name = "node:22-bookworm-slim" }, go = { name = "golang:1.23-bookworm" }, c = { name = "gcc:14-bookworm" },
  shell = DEBIAN, sh = DEBIAN,
}

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function base_of(task, opts, tests)
  if opts.image then return { name = opts.image } end
  if task.image and task.image ~= "host" then return { name = task.image } end
  return BASES[task.metadata.language] or tests and BASES.python or DEBIAN
end

-- Of a Dockerfile: a value in double quotes, in which nothing is expanded.
local function docker_quoted(text) return '"' .. text:gsub('[\\"$]', "\\%0") .. '"' end

local function dockerfile(task, base, workspace)
  local out = { "FROM " .. base.name }
  if base.run then out[#out + 1] = "RUN " .. base.run end
  for _, name in ipairs(schema.names(task.env or {})) do out[#out + 1] = ("ENV %s=%s"):format(name, docker_quoted(task.env[name])) end
  out[#out + 1] = "WORKDIR " .. workspace
  if next(task.files) then out[#out + 1] = ("COPY files/ %s/"):format(workspace) end
  for _, command in ipairs(task.setup_commands) do
    out[#out + 1] = "RUN " .. json.encode(json.array { "/bin/sh", "-c", command })
  end
  return table.concat(out, "\n") .. "\n"
end

-- The verifier's command, and whether it has to write a report that says that tests ran.
local function command_of(task)
  local spec = task.verifier
  local call = command_line.is_tests(spec) and pytest.call_of(spec)
  if call then
    local words = { call.python, "-m", "pytest", "--junitxml=/logs/verifier/report.xml" }
    for i, word in ipairs(table.move(call.args, 1, #call.args, #words + 1, words)) do words[i] = quoted(word) end
    local before = {}
    for _, name in ipairs(schema.names(call.env)) do before[#before + 1] = name .. "=" .. quoted(call.env[name]) end
    return table.concat(before, " ") .. (#before > 0 and " " or "") .. table.concat(words, " "), nil, true
  end
  local plain = { command = true, shell = true, custom = true, pytest = true, test = true }
  if not plain[spec.type] then return nil, err.new("unsupported", "a verifier of type " .. spec.type .. " has no form in Harbor") end
  return spec.command
end

-- Shell that takes away what matches a protect glob.
local function removal(pattern)
  local plain = pattern:gsub("^/", "")
  local folder = plain:match "^([^*?%[]+)/%*%*$"
  if folder then return "rm -rf -- " .. quoted("./" .. folder) end
  if plain == pattern and not plain:find("/", 1, true) then
    return ("find . -name %s -type f -exec rm -f -- {} +"):format(quoted(plain))
  end
  if not plain:find "[*?%[]" then return "rm -f -- " .. quoted("./" .. plain) end
  return nil
end

local TEST = [[
#!/bin/bash
# Puts the task's own files back, runs its verifier and writes the reward.
cd %s || exit 1
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.txt /logs/verifier/report.xml
%s
if [ -d /tests/files ]; then cp -R /tests/files/. ./; fi
timeout -k 5 %s /bin/sh -c %s
status=$?
reward=%s
if [ "$status" -eq %d ]%s; then reward=%s; fi
echo "$reward" > /logs/verifier/reward.txt
]]

local REPORTED = " && grep -q '<testcase' /logs/verifier/report.xml"

local SOLVE = [[
#!/bin/bash
# Lays the reference solution over the starter.
here=$(dirname "$0")
cp -R "$here"/files/. %s/
]]

local function test_script(task, workspace, command, tests)
  local removals, spec = {}, task.verifier
  if tests or spec.protect then
    for _, pattern in ipairs(protect.globs(task)) do removals[#removals + 1] = removal(pattern) end
  end
  return TEST:format(quoted(workspace), table.concat(removals, "\n"), ("%g"):format(math.max(spec.timeout_s, 1)), quoted(command),
    ("%.14g"):format(spec.reward_failure), spec.success_exit_code, tests and REPORTED or "", ("%.14g"):format(spec.reward_success))
end

local function settings_of(task)
  local limits = task.limits or {}
  local own = json.object {}
  own.task_id, own.max_steps = task.task_id, task.max_steps
  local metadata = json.object {}
  for _, key in ipairs(json.is_object(task.metadata) and json.keys(task.metadata) or schema.names(task.metadata)) do
    metadata[key] = task.metadata[key]
  end
  metadata.agentbox = own
  local doc = json.object {}
  doc.schema_version = "1.0"
  doc.task = json.object { name = "agentbox/" .. shape.safe_name(task.task_id):gsub("^[^%w]", "t%0") }
  doc.metadata = metadata
  doc.verifier = json.object { timeout_sec = task.verifier.timeout_s + 60 }
  doc.agent = json.object { timeout_sec = task.timeout_s or 900 }
  doc.environment = json.object {
    build_timeout_sec = 1800, cpus = math.max(1, math.ceil(limits.cpu_count or 1)), memory_mb = math.max(limits.memory_mb or 2048, 512),
    storage_mb = limits.disk_mb or 10240, allow_internet = task.network ~= nil and task.network ~= "none",
  }
  return doc
end

local function lost_of(task)
  local lost = json.array {}
  for _, name in ipairs { "system_prompt_extra", "allowed_tools", "params", "data" } do
    if task[name] ~= nil and task[name] ~= json.null then lost[#lost + 1] = name end
  end
  if #task.artifacts > 0 then lost[#lost + 1] = "artifacts" end
  if type(task.network) == "table" then lost[#lost + 1] = "network (all of it is open)" end
  if task.verifier.score == "fraction" then lost[#lost + 1] = "verifier.score" end
  return lost
end

local function write(path, bytes, mode)
  local ok, problem = fs.mkdir(path:match "^(.*)/", true)
  if not ok and problem.code ~= "exists" then return nil, problem end
  return fs.write(path, bytes, { mode = mode or 420 })
end

local function write_tree(dir, files)
  for _, path in ipairs(schema.names(files)) do
    local ok, problem = write(dir .. "/" .. path, files[path].bytes, files[path].mode)
    if not ok then return nil, problem end
  end
  return true
end

-- Protected files of the starter, and hidden ones over them.
local function trusted(task, tests)
  local out = {}
  if tests or task.verifier.protect then
    local matches = glob.compile(protect.globs(task))
    for path, file in pairs(task.files) do
      if matches(path) then out[path] = file end
    end
  end
  for path, file in pairs(task.hidden) do out[path] = file end
  return out
end

local function write_all(task, dir, texts, trees)
  for _, path in ipairs(schema.names(texts)) do
    local ok, problem = write(dir .. "/" .. path, texts[path], path:find "%.sh$" and 493 or 420)
    if not ok then return nil, problem end
  end
  for _, path in ipairs(schema.names(trees)) do
    local ok, problem = write_tree(dir .. "/" .. path, trees[path])
    if not ok then return nil, problem end
  end
  return lost_of(task)
end

--- See harbor.save.
---@async
---@param task agentbox.Task
---@param dir string
---@param opts? { image?: string }
---@return string[]? lost
---@return agentbox.Err? err
function M.save(task, dir, opts)
  opts = schema.options(opts, { image = { "string" } }, "harbor.save", 2)
  if task.verifier.type == "harbor" then return nil, err.new("unsupported", task.task_id .. ": came from Harbor's form; its folder is that already") end
  if fs.stat(dir) then return nil, err.new("exists", dir .. ": is there already") end
  local command, problem, tests = command_of(task)
  if not command then return nil, err.wrap(problem, task.task_id) end
  local workspace = task.workspace or "/workspace"
  local texts = {
    ["task.toml"] = toml.encode(settings_of(task)), ["instruction.md"] = task.description:gsub("\n*$", "\n"),
    ["environment/Dockerfile"] = dockerfile(task, base_of(task, opts, tests), workspace),
    ["tests/test.sh"] = test_script(task, workspace, command, tests),
  }
  if next(task.solution) then texts["solution/solve.sh"] = SOLVE:format(quoted(workspace)) end
  return write_all(task, dir, texts, {
    ["environment/files"] = task.files, ["tests/files"] = trusted(task, tests), ["solution/files"] = task.solution,
  })
end

return M

--- task/shape.lua: what a task may say, and the one form that the rest of the program sees.
local err = require "agentbox.err"
local hash = require "agentbox.hash"
local jail = require "agentbox.jail"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local specs = require "agentbox.backends._spec"

local M = {}

M.MAX_FILE_BYTES = 64 << 20
M.MAX_TOTAL_BYTES = 256 << 20
M.MAX_FILES = 20000

local file_entry = { "string|record", fields = {
  text = { "string" }, base64 = { "string" }, from = { "string" }, mode = { "string|integer" },
} }

--- The verifier of a task.
M.VERIFIER = {
  type = { "text", default = "command" },
  command = { "text" },
  path = { "text" },
  name = { "text" },
  success_exit_code = { "integer", default = 0 },
  timeout_s = { "number", default = 60, min = 0, max = 1e6 },
  reward_success = { "number", default = 1.0 },
  reward_failure = { "number", default = 0.0 },
  parse_stdout = { "boolean", default = false }, -- AgentBox declares it and never reads it; nor do we
  sandbox = { "string", enum = { "fresh", "agent" }, default = "fresh" },
  user = { "string|integer" },
  protect = { "list", of = { "text" } },
  expect = { "list", of = { "text" } },
  score = { "string", enum = { "all", "fraction" }, default = "all" },
  params = { "map" },
}

local LIMITS = specs.limits "number"
LIMITS.network_disabled = { "boolean" }

M.TASK = {
  task_id = { "string", required = true },
  description = { "string", required = true },
  starter_files = { "map", of = { "string" } },
  files = { "map", of = file_entry },
  hidden = { "map", of = file_entry },
  solution = { "map", of = file_entry },
  setup_commands = { "list", of = { "text" } },
  verifier = { "record", required = true, fields = M.VERIFIER },
  metadata = { "map" },
  system_prompt_extra = { "string" },
  allowed_tools = { "list", of = { "string" } },
  max_steps = { "integer", min = 0 },
  timeout_s = { "number", min = 0 },
  workspace = { "text" },
  image = { "text" },
  limits = { "record", fields = LIMITS },
  env = { "map", of = { "string" } },
  network = { "string|map" },
  params = { "any" },
  data = { "any" },
  artifacts = { "list", of = { "text" } },
}

-- ---------------------------------------------------------------- ids

--- An id is data: slashes, spaces and a leading dash are fine. What reads as a way out of a folder is not, so that
--- nobody has to trust every reader of a record to sanitise it.
---@param id string
---@return string? problem
function M.id_problem(id)
  if id == "" then return "is empty" end
  if #id > 512 then return "is longer than 512 bytes" end
  if id:find("%c") then return "holds a control character" end
  if not utf8.len(id) then return "is not UTF-8" end
  if id:sub(1, 1) == "/" then return "is an absolute path: " .. id end
  for part in id:gmatch("[^/]+") do
    if part == ".." then return "escapes its folder: " .. id end
  end
end

--- A file name derived from an id: the id with everything unusual replaced.
---@param id string
---@return string
function M.safe_name(id)
  local name = id:gsub("[^%w_.-]+", "_"):sub(1, 80):gsub("^[.-]+", "_")
  return name == "" and "task" or name
end

-- ---------------------------------------------------------------- files

---@class agentbox.TaskFile
---@field bytes string
---@field mode integer

local function parse_mode(mode)
  if mode == nil then return 420 end -- 0644
  local n
  if type(mode) == "string" then n = tonumber(mode, 8) else n = math.tointeger(mode) end
  if not n or n < 0 or n > 511 then return nil, 'mode must be permission bits as in "0755", is ' .. tostring(mode) end
  return n
end

local BASE64 = {}
for i, char in utf8.codes("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") do
  BASE64[utf8.char(char)] = i - 1
end

--- Standard base64, blanks allowed.
---@param text string
---@return string? bytes
---@return string? problem
function M.from_base64(text)
  text = text:gsub("%s+", "")
  local body = text:gsub("=+$", "")
  if #text - #body > 2 or body:find("[^%w+/]") or #body % 4 == 1 then return nil, "is not base64" end
  local out, word, bits = {}, 0, 0
  for char in body:gmatch(".") do
    word, bits = (word << 6 | BASE64[char]) & 0xffffff, bits + 6
    if bits >= 8 then
      bits = bits - 8
      out[#out + 1] = string.char(word >> bits & 255)
    end
  end
  return table.concat(out)
end

local LETTERS = {}
for char, value in pairs(BASE64) do LETTERS[value] = char end

--- The same, the other way.
---@param bytes string
---@return string
function M.to_base64(bytes)
  local out = {}
  for at = 1, #bytes, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    local word = a << 16 | (b or 0) << 8 | (c or 0)
    out[#out + 1] = LETTERS[word >> 18] .. LETTERS[word >> 12 & 63] .. (b and LETTERS[word >> 6 & 63] or "=")
        .. (c and LETTERS[word & 63] or "=")
  end
  return table.concat(out)
end

local function one_file(entry, read_from)
  if type(entry) == "string" then return { bytes = entry, mode = 420 } end
  local sources = (entry.text and 1 or 0) + (entry.base64 and 1 or 0) + (entry.from and 1 or 0)
  if sources ~= 1 then return nil, "needs exactly one of text, base64, from" end
  local mode, problem = parse_mode(entry.mode)
  if not mode then return nil, problem end
  local bytes = entry.text
  if entry.base64 then bytes, problem = M.from_base64(entry.base64) end
  if entry.from then
    local file
    file, problem = read_from(entry.from)
    bytes = file and file.bytes
    if file and entry.mode == nil then mode = file.mode end
  end
  if not bytes then return nil, problem end
  return { bytes = bytes, mode = mode }
end

local function add_file(into, name, file, field)
  local rel, reason = jail.starter(name)
  if not rel then return nil, ('%s: "%s": %s'):format(field, name:gsub("%z", "\\0"), reason) end
  into[rel] = file
  return true
end

--- A file must not also be the folder of another.
local function conflict(files)
  for _, path in ipairs(schema.names(files)) do
    local parent = path:match("^(.*)/[^/]*$")
    while parent do
      if files[parent] then return ('"%s" is a file and the folder of "%s"'):format(parent, path) end
      parent = parent:match("^(.*)/[^/]*$")
    end
  end
end

local function check_size(files)
  local count, total = 0, 0
  for path, file in pairs(files) do
    count, total = count + 1, total + #file.bytes
    if #file.bytes > M.MAX_FILE_BYTES then return ('"%s" is larger than %d bytes'):format(path, M.MAX_FILE_BYTES) end
  end
  if count > M.MAX_FILES then return ("more than %d files"):format(M.MAX_FILES) end
  if total > M.MAX_TOTAL_BYTES then return ("more than %d bytes in all"):format(M.MAX_TOTAL_BYTES) end
end

--- One of the three trees: what the task file says, under what the folder holds.
local function file_tree(field, given, folder, read_from)
  local out = {}
  for _, source in ipairs(given) do
    for _, name in ipairs(schema.names(source.map)) do
      local file, problem = one_file(source.map[name], read_from)
      if not file then return nil, ('%s: "%s": %s'):format(source.field, name, problem) end
      local ok, reason = add_file(out, name, file, source.field)
      if not ok then return nil, reason end
    end
  end
  for name, file in pairs(folder or {}) do
    local ok, reason = add_file(out, name, file, field)
    if not ok then return nil, reason end
  end
  local problem = conflict(out) or check_size(out)
  if problem then return nil, field .. ": " .. problem end
  return out
end

-- ---------------------------------------------------------------- the task

local function files_for_hash(files)
  local out = {}
  for path, file in pairs(files) do
    out[path] = ("%o:%s"):format(file.mode, hash.sha256(file.bytes))
  end
  return out
end

--- The hash says whether two tasks are the same work: every field and every byte, not where they were read from.
local function content_hash(task)
  local plain = {}
  for key in pairs(M.TASK) do plain[key] = task[key] end
  plain.files, plain.hidden = files_for_hash(task.files), files_for_hash(task.hidden)
  plain.solution, plain.starter_files = files_for_hash(task.solution), nil
  return "sha256:" .. hash.sha256(json.encode(plain, { sorted = true }))
end

--- What the model is told at the start of every request.
local MAX_PROMPT_BYTES = 4 << 20

local function check_prompt(task)
  for _, name in ipairs { "description", "system_prompt_extra" } do
    if task[name] and #task[name] > MAX_PROMPT_BYTES then
      return ("%s: is longer than %d bytes"):format(name, MAX_PROMPT_BYTES)
    end
  end
end

local function check_verifier(verifier)
  if verifier.type == "command" and (verifier.command or ""):match("^%s*$") then
    return 'verifier.command: is missing (verifier.type is "command")'
  end
  if verifier.type == "lua" and not verifier.name then return 'verifier.name: is missing (verifier.type is "lua")' end
end

--- Checks a decoded task and brings it to its one form.
---@param raw table                        # decoded JSON, YAML or a Lua table
---@param opts { where: string, folder?: table, read_from?: fun(name: string): agentbox.TaskFile?, string? }
---@return table? task
---@return agentbox.Err? err               # code `task`
function M.build(raw, opts)
  local function bad(text) return nil, err.new("task", opts.where .. ": " .. text) end
  local task, problem = schema.check(raw, M.TASK, { code = "task", where = opts.where })
  if not task then return nil, problem end
  local id_problem = M.id_problem(task.task_id)
  if id_problem then return bad("task_id: " .. id_problem) end
  local wrong = check_verifier(task.verifier) or check_prompt(task)
  wrong = wrong or specs.image_problem(task.image) or task.env and specs.env_problem(task.env)
  if wrong then return bad(wrong) end
  local folder = opts.folder or {}
  local read_from = opts.read_from or function() return nil, "`from` needs a task read from a folder" end
  local trees = {
    files = { { field = "starter_files", map = task.starter_files or {} }, { field = "files", map = task.files or {} } },
    hidden = { { field = "hidden", map = task.hidden or {} } },
    solution = { { field = "solution", map = task.solution or {} } },
  }
  for _, field in ipairs { "files", "hidden", "solution" } do
    local reason
    task[field], reason = file_tree(field, trees[field], folder[field], read_from)
    if not task[field] then return bad(reason) end
  end
  task.starter_files = nil
  task.setup_commands = task.setup_commands or json.array {}
  task.metadata = task.metadata or json.object {}
  task.artifacts = task.artifacts or json.array {}
  task.hash = content_hash(task)
  return task
end

return M

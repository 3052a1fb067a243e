--- The models that a suite is run with: `id=model@url` on a command line, a models file, or `students` of agentbox.yaml.
local err = require "agentbox.err"
local files = require "agentbox.config.file"
local fs = require "agentbox.fs"
local json = require "agentbox.json"
local model = require "agentbox.model"
local model_file = require "agentbox.models.file"
local schema = require "agentbox.schema"
local secret = require "agentbox.secret"
local task = require "agentbox.task"
local yaml = require "agentbox.yaml"

local M = {}

local PRICE = { prompt = { "number", required = true, min = 0 }, completion = { "number", required = true, min = 0 },
  cached = { "number", min = 0 } }

--- What a student of a file may say.
M.FIELDS = {
  id = { "string" }, model_id = { "string" }, model = { "string", required = true }, base_url = { "string" },
  base_urls = { "list", of = { "string" } }, api_key = { "string" }, temperature = { "number", min = 0 }, top_p = { "number" },
  max_tokens = { "integer", min = 1 }, seed = { "integer|string" }, timeout_s = { "number", min = 0.001 },
  extra_headers = { "map" }, headers = { "map" }, extra_body = { "map" }, stream = { "boolean" }, tokens = { "string" },
  limit = { "integer", min = 1 }, requests_per_minute = { "number", min = 0.001 }, tokens_per_minute = { "number", min = 1 },
  max_tries = { "integer", min = 1 }, concurrency = { "integer", min = 1 }, price = { "record", fields = PRICE },
}

-- Kinds for the expansion of ${NAME}, which is of texts.
local KINDS = { each = {
  id = "string", model_id = "string", model = "string", base_url = "string", base_urls = "list", api_key = "secret", seed = "any",
  extra_headers = "map", headers = "map", extra_body = "map", tokens = "string", temperature = "number", top_p = "number",
  max_tokens = "integer", timeout_s = "number", stream = "boolean", limit = "integer", requests_per_minute = "number",
  tokens_per_minute = "number", max_tries = "integer", concurrency = "integer",
  price = { prompt = "number", completion = "number", cached = "number" },
} }

local function bad(code, text, ...) return nil, err.new(code, text:format(...)) end

---@class agentbox.Student
---@field id string
---@field dir string            # its id as a folder's name
---@field model agentbox.Model
---@field probe? agentbox.Model  # of a server: the same, giving up sooner, to be asked before the run
---@field concurrency? integer
---@field price? agentbox.Price

--- Takes `id=model@url` apart: at the first `=`, and at the first `@` before a scheme, so that neither a version in the
--- name nor a password in the address splits it wrongly. `id=scripted:FILE`, `id=lua:FILE` and `id=mock` have no address.
---@param text string
---@return { id: string, model: string, base_url?: string }?
---@return agentbox.Err? err   # code `usage`
function M.parse(text)
  local id, rest = text:match "^([^=]*)=(.*)$"
  if not id or id == "" or rest == "" then return bad("usage", "--student %s: must read ID=MODEL@URL", text) end
  if rest == "mock" or model_file.is(rest) then return { id = id, model = rest } end
  local at = rest:find "@https?://[^/]"
  if not at or at == 1 then
    return bad("usage", "--student %s: must read ID=MODEL@URL with a URL that begins with http:// or https://", text)
  end
  return { id = id, model = rest:sub(1, at - 1), base_url = rest:sub(at + 1) }
end

--- The students of a models file, JSON or YAML: a list `models` of maps. `${NAME}` is the environment's.
---@async
---@param path string
---@return table[]? entries
---@return agentbox.Err? err   # code `config`
function M.read_file(path)
  local text, problem = fs.read(path, 1 << 20)
  if not text then return bad("config", "%s: %s", path, problem.msg) end
  local doc
  doc, problem = (path:find "%.json$" and json or yaml).decode((text:gsub("^\xef\xbb\xbf", "")))
  if problem then return bad("config", "%s: %s", path, problem.msg) end
  local list = type(doc) == "table" and doc.models
  if type(list) ~= "table" or json.is_object(list) or #list == 0 then
    return bad("config", "%s: needs a list `models` with at least one entry", path)
  end
  for key in pairs(doc) do
    if key ~= "models" then return bad("config", "%s: unknown key %s; models are in the list `models`", path, tostring(key)) end
  end
  return files.expand({ path = path, text = text }, "models", list, KINDS, require "agentbox.sys.os".env)
end

local MOCK = "I am a mock; I answer once and change nothing."
local OPENED = { "model", "base_url", "base_urls", "timeout_s", "stream", "tokens", "limit", "requests_per_minute",
  "tokens_per_minute" }

local PROBE_TRIES = 3

-- A password in an address is a secret, like a key.
local function register_passwords(entry)
  local urls = table.move(entry.base_urls or {}, 1, #(entry.base_urls or {}), 2, { entry.base_url })
  for _, url in pairs(urls) do
    local password = url:match "^%a+://[^/]*:([^/@]+)@"
    if password then secret.register(password) end
  end
end

local function of_server(entry, defaults, max_tries)
  register_passwords(entry)
  local body = {}
  for key, value in pairs(defaults.extra_body or {}) do body[key] = value end
  for key, value in pairs(entry.extra_body or {}) do body[key] = value end
  local opts = { sampling = {
    temperature = entry.temperature or 0.7, max_tokens = entry.max_tokens or 4096, top_p = entry.top_p, seed = entry.seed,
  } }
  for _, name in ipairs(OPENED) do opts[name] = entry[name] end
  opts.api_key = entry.api_key or defaults.api_key
  opts.extra_headers = entry.extra_headers or entry.headers
  opts.extra_body = next(body) and body or nil
  opts.max_tries = max_tries or entry.max_tries
  return model.configured(opts)
end

local function is_local(entry)
  local name = entry.model
  return name == "mock" and not entry.base_url or model_file.is(name)
end

local function open(entry, defaults)
  if not is_local(entry) then return of_server(entry, defaults) end
  return entry.model == "mock" and model.scripted { name = "mock", MOCK } or model_file.open(entry.model)
end

-- A folder's name for an id, different from those that are taken.
local function folder_of(id, taken)
  local base = task.safe_name(id)
  local name, n = base, 1
  while taken[name:lower()] do
    n = n + 1
    name = ("%s_%d"):format(base, n)
  end
  taken[name:lower()] = true
  return name
end

local function check(entry)
  local clean, problem = schema.check(entry, M.FIELDS, { code = "config" })
  if not clean then return nil, problem end
  clean.id = clean.id or clean.model_id or clean.model:gsub("[/:]", "-")
  if clean.id == "" or #clean.id > 200 or clean.id:find "%c" or not utf8.len(clean.id) then
    return bad("usage", "a student's id must be one line of text of at most 200 bytes")
  end
  return clean
end

--- Opens the models. Ids must differ; where two come to the same folder's name, one gets a number.
---@async
---@param entries table[]     # as `parse`, `read_file` and the configuration give them
---@param defaults { api_key?: string, extra_body?: table }
---@return agentbox.Student[]?
---@return agentbox.Err? err   # `usage`, `config`
function M.open(entries, defaults)
  local out, ids, taken = {}, {}, {}
  for i, entry in ipairs(entries) do
    local clean, problem = check(entry)
    if not clean then return nil, err.wrap(problem, ("model %d"):format(i)) end
    if ids[clean.id] then return bad("usage", "two students are called %s", clean.id) end
    ids[clean.id] = true
    local handle
    handle, problem = open(clean, defaults)
    if not handle then return nil, err.wrap(problem, "student " .. clean.id) end
    out[i] = {
      id = clean.id, dir = folder_of(clean.id, taken), model = handle, concurrency = clean.concurrency, price = clean.price,
      probe = not is_local(clean) and of_server(clean, defaults, math.min(PROBE_TRIES, clean.max_tries or PROBE_TRIES)) or nil,
    }
  end
  return out
end

return M

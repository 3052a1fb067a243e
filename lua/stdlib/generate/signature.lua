--- generate/signature.lua: what a model is to answer, declared once: fields, types, instructions.
---
---     local judge = ab.generate.signature { name = "judge", instructions = "Judge the task.",
---       { "accept", "boolean", "whether it may be used" }, { "score", "number", "0 to 1", min = 0, max = 1 } }
---     local answer, err = judge:ask(model, "Task: ...")
---
--- The answer is asked for by JSON Schema, where the server refuses that as a tool call, else as text with a JSON object
--- in it; what a server accepted is remembered. Types: string, number, integer, boolean, list, map.
local err = require "agentbox.err"
local extract = require "agentbox.generate.extract"
local json = require "agentbox.json"
local schema = require "agentbox.schema"

local M = {}

---@class agentbox.SignatureField
---@field name string
---@field kind "string"|"number"|"integer"|"boolean"|"list"|"map"
---@field about string
---@field required boolean
---@field min? number
---@field max? number
---@field items? table          # of a list: the JSON Schema of an element, a string's unless given

---@class agentbox.Signature
---@field name string
---@field instructions string
---@field fields agentbox.SignatureField[]
local Signature = {}
Signature.__index = Signature

local KINDS = { string = true, number = true, integer = true, boolean = true, list = true, map = true }

local function field_of(given, i)
  local name, kind, about = given[1], given[2], given[3]
  if type(name) ~= "string" or not KINDS[kind] then
    error(("generate.signature: field %d must be { name, type, about }"):format(i), 4)
  end
  return { name = name, kind = kind, about = about or "", required = not given.optional, min = given.min, max = given.max,
    default = given.default, items = given.items }
end

--- Declares a signature. A field is `{ name, type, about, optional =, default =, min =, max =, items = }`.
---@param given table   # name, instructions, and the fields as a list
---@return agentbox.Signature
function M.new(given)
  if type(given) ~= "table" then error("generate.signature: a table is expected", 3) end
  local fields = {}
  for i, one in ipairs(given) do fields[i] = field_of(one, i) end
  if #fields == 0 then error("generate.signature: no fields", 3) end
  for key in pairs(given) do
    if math.type(key) ~= "integer" and key ~= "name" and key ~= "instructions" then
      error(("generate.signature: unknown key '%s'"):format(tostring(key)), 3)
    end
  end
  return setmetatable({ name = given.name or "answer", instructions = given.instructions or "", fields = fields }, Signature)
end

-- ---------------------------------------------------------------- what is asked

local TYPES = { list = "array", map = "object" }

--- The fields as a JSON Schema.
---@return table
function Signature:schema()
  local properties, required = json.object {}, json.array {}
  for _, field in ipairs(self.fields) do
    local one = json.object { type = TYPES[field.kind] or field.kind }
    one.description = field.about ~= "" and field.about or nil
    one.minimum, one.maximum = field.min, field.max
    if field.kind == "list" then one.items = field.items or json.object { type = "string" } end
    if field.kind == "map" then one.additionalProperties = true end
    properties[field.name] = one
    if field.required then required[#required + 1] = field.name end
  end
  local out = json.object { type = "object" }
  out.properties, out.required = properties, required
  return out
end

--- What a server that knows neither schemas nor tools is told.
---@return string
function Signature:words()
  local lines = { "Answer with one JSON object and nothing else. Its members:" }
  for _, field in ipairs(self.fields) do
    lines[#lines + 1] = ("- %s (%s%s): %s"):format(field.name, field.kind, field.required and "" or ", optional", field.about)
  end
  return table.concat(lines, "\n")
end

local asking = {}

function asking.schema(self, request)
  local format = json.object { type = "json_schema" }
  format.json_schema = json.object { name = self.name, schema = self:schema() }
  request.sampling.response_format = format
end

function asking.tool(self, request)
  local fn = json.object { name = self.name, description = "Gives the answer.", parameters = self:schema() }
  request.tools = { json.object { type = "function", ["function"] = fn } }
  request.tool_choice = "required"
end

function asking.text() end

local NEXT = { schema = "tool", tool = "text" }

-- What each model's server took, while the model is in use.
local accepted = setmetatable({}, { __mode = "k" })

local function refused(problem)
  local status = problem.http_status
  if status ~= 400 and status ~= 404 and status ~= 415 and status ~= 422 and status ~= 501 then return false end
  local said = ((problem.body or "") .. " " .. tostring(problem.msg)):lower()
  for _, word in ipairs { "response_format", "json_schema", "schema", "json_object", "tool", "function", "guided", "grammar" } do
    if said:find(word, 1, true) then return true end
  end
  return false
end

-- ---------------------------------------------------------------- what came

local function text_of(response)
  local message = response.message
  local call = message.tool_calls and message.tool_calls[1]
  if call then return call.raw_arguments or call["function"].arguments end
  for _, name in ipairs { "content", "reasoning_content", "reasoning" } do
    local value = message[name]
    if type(value) == "string" and value:find "%S" then return value end
  end
  return ""
end

local function converted(field, value)
  local kind = field.kind
  if kind == "boolean" then return extract.boolean(value) end
  if kind == "number" or kind == "integer" then
    local n = extract.number(value)
    if n and field.min then n = math.max(field.min, n) end
    if n and field.max then n = math.min(field.max, n) end
    return kind == "integer" and n and math.floor(n) or n
  end
  if kind == "string" then return type(value) == "string" and value or type(value) == "number" and tostring(value) or nil end
  value = extract.structure(value)
  if kind == "list" and type(value) == "string" then value = json.array { value } end
  if type(value) ~= "table" then return nil end
  local fits = kind == "list" and schema.is_list(value) or kind == "map" and schema.is_map(value)
  return fits and value or nil
end

--- The fields in a text; what is missing or of another type is named.
---@param text string
---@return table? values
---@return agentbox.Err? err        # code `parse`
---@return boolean? repaired
function Signature:read(text)
  local names = {}
  for i, field in ipairs(self.fields) do names[i] = field.name end
  local object, why = extract.object(text, names)
  if not object then return extract.unreadable(why) end
  local values = {}
  for _, field in ipairs(self.fields) do
    local given = object[field.name]
    if given == json.null then given = nil end
    if given ~= nil then
      values[field.name] = converted(field, given)
      if values[field.name] == nil then
        return nil, err.new("parse", ("the answer's %s is not a %s"):format(field.name, field.kind))
      end
    elseif field.default ~= nil then
      values[field.name] = field.default
    elseif field.required then
      return nil, err.new("parse", ("the answer has no %s"):format(field.name))
    end
  end
  return values, nil, why
end

local function request_of(self, mode, prompt, opts)
  local system = self.instructions
  if mode == "text" then system = system .. "\n\n" .. self:words() end
  local sampling = {}
  for name, value in pairs(opts.sampling or {}) do sampling[name] = value end
  local request = {
    messages = { { role = "system", content = system }, { role = "user", content = prompt } }, sampling = sampling,
    timeout_s = opts.timeout_s, session = opts.session,
  }
  asking[mode](self, request)
  return request
end

--- Asks a model and gives its answer's text; `read` makes fields of it.
---@async
---@param model agentbox.Model
---@param prompt string
---@param opts? { sampling?: table, timeout_s?: number, session?: string, mode?: "schema"|"tool"|"text" }
---@return string? text
---@return agentbox.Err|agentbox.Response? err_or_response
---@return string? mode      # how the server was asked
function Signature:raw(model, prompt, opts)
  opts = opts or {}
  local mode = opts.mode or accepted[model] or "schema"
  while true do
    local response, problem = model:complete(request_of(self, mode, prompt, opts))
    if response then
      accepted[model] = mode
      return text_of(response), response, mode
    end
    if not NEXT[mode] or not refused(problem) then return nil, problem end
    mode = NEXT[mode]
  end
end

--- Asks a model and reads its answer.
---@async
---@param model agentbox.Model
---@param prompt string
---@param opts? { sampling?: table, timeout_s?: number, session?: string, mode?: "schema"|"tool"|"text" }
---@return table? values
---@return agentbox.Err? err      # of the model, or code `parse`
---@return agentbox.Response? response
function Signature:ask(model, prompt, opts)
  local text, response = self:raw(model, prompt, opts)
  if not text then return nil, response end
  local values, problem = self:read(text)
  if values then return values, nil, response end
  if response.finish.norm == "length" then problem.msg = problem.msg .. " (it was cut off: max_tokens)" end
  return nil, problem, response
end

return M

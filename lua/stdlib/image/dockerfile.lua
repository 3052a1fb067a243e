--- image/dockerfile.lua: reads the part of Dockerfiles that is built without a daemon. Everything else is refused with
--- its line: half a build would be worse than none.
local err = require "agentbox.err"
local json = require "agentbox.json"

local M = {}

local MAX_BYTES = 1 << 20

---@class agentbox.image.Step
---@field op "from"|"run"|"copy"|"env"|"workdir"|"user"|"arg"
---@field line integer
---@field text string       # as it was written, on one line
---@field rest string       # behind the instruction's name
---@field words? string[]   # run: the exec form
---@field flags? table<string, string>

local function refuse(step, why)
  return nil, err.new("unsupported", ("line %d: %s"):format(step.line, why),
    { hint = "build it with Docker, then: docker save IMAGE | agentbox image import -; or use the Docker backend" })
end

local function wrong(line, why)
  return nil, err.new("parse", ("line %d: %s"):format(line, why))
end

-- Comments are gone, continued lines are joined; each with the number of its first line.
local function logical_lines(text)
  local lines, current, number, first = {}, nil, 0, nil
  local escape = text:match "^#%s*escape%s*=%s*(.)" or text:match "\n#%s*escape%s*=%s*(.)" or "\\"
  for raw in (text .. "\n"):gmatch "(.-)\r?\n" do
    number = number + 1
    local is_comment = raw:find "^%s*#" ~= nil
    if not is_comment and (current or raw:find "%S") then
      first = first or number
      local body = raw:gsub("%s+$", "")
      if body:sub(-1) == escape then
        current = (current or "") .. body:sub(1, -2)
      else
        lines[#lines + 1] = { line = first, text = ((current or "") .. raw):gsub("^%s+", ""):gsub("%s+$", "") }
        current, first = nil, nil
      end
    end
  end
  if current then lines[#lines + 1] = { line = first, text = current:gsub("^%s+", "") } end
  return lines
end

-- "--chown=1:2 --chmod=755 rest" as flags and rest.
local function take_flags(step, allowed)
  step.flags = {}
  while true do
    local name, value, rest = step.rest:match "^%-%-([%w-]+)=?(%S*)%s*(.*)$"
    if not name then return step end
    if not allowed[name] then return refuse(step, ("--%s of %s is not supported"):format(name, step.op:upper())) end
    step.flags[name], step.rest = value, rest
  end
end

local function exec_form(step)
  if step.rest:sub(1, 1) ~= "[" then return nil end
  local list = json.decode(step.rest)
  if not json.is_array(list) or #list == 0 then return nil end
  for _, word in ipairs(list) do
    if type(word) ~= "string" then return nil end
  end
  return table.move(list, 1, #list, 1, {})
end

local ARCHIVES = { "%.tar$", "%.tar%.%w+$", "%.tgz$", "%.tbz2?$", "%.txz$" }

local function check_sources(step)
  step.words = exec_form(step)
  if not step.words then
    step.words = {}
    for word in step.rest:gmatch "%S+" do step.words[#step.words + 1] = word end
  end
  if #step.words < 2 then return wrong(step.line, step.name .. " wants sources and a destination") end
  for i = 1, #step.words - 1 do
    local source = step.words[i]
    if source:find "^<<" then return refuse(step, "here documents are not supported") end
    if source:find "^%w+://" or source:find "^git@" then return refuse(step, "ADD of a URL is not supported") end
    for _, pattern in ipairs(ARCHIVES) do
      if step.name == "ADD" and source:find(pattern) then
        return refuse(step, "ADD that unpacks an archive is not supported (COPY it, and RUN tar)")
      end
    end
  end
  return step
end

local parsers = {}

function parsers.FROM(step)
  if step.rest:find "^%-%-" then return refuse(step, "FROM --platform is not supported") end
  local image, stage = step.rest:match "^(%S+)%s+[Aa][Ss]%s+(%S+)$"
  step.rest = image or step.rest
  if not stage and step.rest:find "%s" then return wrong(step.line, "FROM wants one image") end
  return step
end

function parsers.RUN(step)
  if step.rest:find "^%-%-" then return refuse(step, ("RUN %s is not supported"):format(step.rest:match "^%S+")) end
  if step.rest:find "<<%-?[\"']?%a" and not exec_form(step) then
    return refuse(step, "here documents are not supported")
  end
  step.words = exec_form(step)
  return step
end

function parsers.COPY(step)
  local ok, problem = take_flags(step, { chown = true, chmod = true })
  if not ok then return nil, problem end
  if step.flags.chmod and not step.flags.chmod:find "^0?[0-7][0-7][0-7]$" then
    return refuse(step, "--chmod wants three octal digits")
  end
  return check_sources(step)
end

parsers.ADD = parsers.COPY
for _, name in ipairs { "ENV", "WORKDIR", "USER", "ARG" } do parsers[name] = function(step) return step end end

local function parse_line(line)
  local name, rest = line.text:match "^(%a+)%s+(.*)$"
  name = (name or line.text):upper()
  local step = { name = name, op = name == "ADD" and "copy" or name:lower(), line = line.line, text = line.text,
    rest = rest or "" }
  if not parsers[name] then return refuse(step, ("%s is not supported"):format(name:sub(1, 40))) end
  if step.rest == "" then return wrong(line.line, name .. " wants something behind it") end
  return parsers[name](step)
end

---@param text string
---@return agentbox.image.Step[]? steps    # the first that is no ARG is FROM
---@return agentbox.Err?
function M.parse(text)
  if #text > MAX_BYTES then return nil, err.new("toobig", "a Dockerfile of more than 1 MiB") end
  local steps, from = {}, false
  for _, line in ipairs(logical_lines(text)) do
    local step, problem = parse_line(line)
    if not step then return nil, problem end
    if step.op == "from" then
      if from then return refuse(step, "a second FROM (a build of several stages) is not supported") end
      from = true
    elseif not from and step.op ~= "arg" then
      return wrong(step.line, "the first instruction must be FROM")
    end
    steps[#steps + 1] = step
  end
  if not from then return wrong(1, "there is no FROM") end
  return steps
end

-- ---------------------------------------------------------------- variables

local function one_variable(vars, text, at)
  local name, last = text:match("^{([%a_][%w_]*)}()", at)
  if not name then name, last = text:match("^([%a_][%w_]*)()", at) end
  if name then return vars[name] or "", last end
  local key, kind, word, stop = text:match("^{([%a_][%w_]*):([-+])([^}]*)}()", at)
  if not key then return nil end
  local set = vars[key] ~= nil and vars[key] ~= ""
  if kind == "-" then return set and vars[key] or word, stop end
  return set and word or "", stop
end

---Puts values in for $NAME, ${NAME}, ${NAME:-word} and ${NAME:+word}. Nil when there is something else with a $.
---@param vars table<string, string>
---@param text string
---@return string?
function M.expand(vars, text)
  local out, at = {}, 1
  while true do
    local from = text:find("[\\$]", at)
    if not from then break end
    out[#out + 1] = text:sub(at, from - 1)
    if text:sub(from, from) == "\\" then
      local next_char = text:sub(from + 1, from + 1)
      out[#out + 1] = next_char == "$" and "$" or "\\" .. next_char
      at = from + 2
    else
      local value, last = one_variable(vars, text, from + 1)
      if not value then return nil end
      out[#out + 1], at = value, last
    end
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out)
end

-- One word, in quotes or not, from `at` on.
local function quoted(text, at)
  local out, quote = {}, nil
  while at <= #text do
    local char = text:sub(at, at)
    if quote then
      if char == quote then
        quote = nil
      elseif char == "\\" and quote == '"' and text:sub(at + 1, at + 1):find '["\\]' then
        at = at + 1
        out[#out + 1] = text:sub(at, at)
      else
        out[#out + 1] = char
      end
    elseif char == '"' or char == "'" then
      quote = char
    elseif char == "\\" and at < #text then
      at = at + 1
      out[#out + 1] = text:sub(at, at)
    elseif char:find "%s" then
      break
    else
      out[#out + 1] = char
    end
    at = at + 1
  end
  return table.concat(out), at
end

---The pairs of ENV or ARG: `A=1 B="two words"`, or `A one value` for ENV. A name alone has no value (ARG).
---@param step agentbox.image.Step
---@return [string, string?][]?
---@return agentbox.Err?
function M.pairs_of(step)
  local list, at, text = {}, 1, step.rest
  local legacy, value = text:match "^([%a_][%w_.-]*)%s+([^=]*)$"
  if legacy and step.op == "env" then return { { legacy, value } } end
  while true do
    at = text:find("%S", at)
    if not at then break end
    local name, after = text:match("^([%a_][%w_.-]*)()", at)
    if not name then return wrong(step.line, step.name .. " wants NAME=VALUE") end
    if text:sub(after, after) == "=" then
      local word
      word, at = quoted(text, after + 1)
      list[#list + 1] = { name, word }
    elseif step.op == "arg" then
      list[#list + 1], at = { name }, after
    else
      return wrong(step.line, "ENV wants NAME=VALUE")
    end
  end
  return list
end

return M

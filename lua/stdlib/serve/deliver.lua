--- Groups as a trainer gets them: facts, and the rows of the formats that it asks for, as the exports write them.
local err = require "agentbox.err"
local export = require "agentbox.export"
local json = require "agentbox.json"
local log = require "agentbox.log"

local M = {}

--- The formats that a query names, checked: "verl,art" or "art:form=exchanges".
---@param text? string
---@return { name: string, format: string, options: table }[]?
---@return agentbox.Err? err
function M.formats(text)
  local list = {}
  for name in (text or ""):gmatch "[^,]+" do
    local format, options = name:match "^([%w_-]+)", {}
    for key, value in name:gmatch ":([%w_]+)=([%w_.-]+)" do options[key] = tonumber(value) or value end
    local lines, problem = export.lines { format = format or name, trajectories = {}, options = options }
    if not lines then return nil, problem end
    list[#list + 1] = { name = name, format = format, options = options }
  end
  return list
end

-- The rows of one format: a JSON list of what an export of these trajectories would write as lines.
local function rows(trajectories, wanted)
  local lines, problem = export.lines { format = wanted.format, trajectories = trajectories, options = wanted.options }
  if not lines then return nil, problem end
  for i, line in ipairs(lines) do lines[i] = line:sub(1, -2) end
  return json.raw("[" .. table.concat(lines, ",") .. "]")
end

local FACTS = {
  "seq", "id", "task_id", "size", "members", "rewards", "outcomes", "partial", "zero_signal", "waste", "evicted", "why",
  "independent", "ranking",
}

local function versions(trajectories)
  local least, most
  for _, t in ipairs(trajectories) do
    if t.version_min and (not least or t.version_min < least) then least = t.version_min end
    if t.version_max and (not most or t.version_max > most) then most = t.version_max end
  end
  return least, most
end

-- The text of a group; nothing when it has become too old, and is dropped.
local function text_of(door, group, formats)
  local trajectories, problem = group:trajectories()
  if not trajectories then return nil, problem end
  local doc = json.object {}
  for _, name in ipairs(FACTS) do doc[name] = group[name] end
  for _, name in ipairs { "members", "rewards", "outcomes" } do
    doc[name] = json.array(table.move(group[name], 1, #group[name], 1, {}))
  end
  doc.version_min, doc.version_max = versions(trajectories)
  local current, max = door.run.models.agent.version, door.run.opts.max_staleness
  doc.version = current
  doc.stale = max and current and doc.version_min and current - doc.version_min > max or false
  local out = json.object {}
  for _, wanted in ipairs(formats) do
    out[wanted.name], problem = rows(trajectories, wanted)
    if problem then return nil, problem end
  end
  doc.formats = out
  return json.encode(doc), doc.stale
end

local function drop(door, group)
  door.stale_groups = door.stale_groups + 1
  door.run:_event("stale_group", { seq = group.seq, id = group.id, task_id = group.task_id })
  return door.run:ack(group)
end

--- The texts of up to `most` groups after a number that wait to be acknowledged. Those that are too old are dropped.
---@async
---@param door agentbox.Serve
---@param after integer
---@param most integer
---@param formats table[]
---@return string[]? texts
---@return agentbox.Err? err
function M.ready(door, after, most, formats)
  local texts = {}
  for group in door.run:_waiting(after) do
    local text, stale = text_of(door, group, formats)
    if not text then
      log.error("serve: group %d: %s", group.seq, stale.msg)
      return nil, stale
    end
    if stale and door._stale == "drop" then
      local ok, problem = drop(door, group)
      if not ok then return nil, problem end
    else
      texts[#texts + 1] = text
    end
    if #texts >= most then break end
  end
  return texts
end

local function body(door, texts)
  local run = door.run
  local head = json.encode(json.object {
    state = run.state, ended = #texts == 0 and door:_exhausted(), cursor = run.cursor,
    version = run.models.agent.version,
    failure = run.failure and run.failure.msg or nil,
  })
  return ('%s,"groups":[%s]}\n'):format(head:sub(1, -2), table.concat(texts, ","))
end

---@param door agentbox.Serve
---@param texts string[]
---@return table
function M.answer(door, texts) return { type = "application/json", body = body(door, texts) } end

--- One group by its number, whether or not it was acknowledged.
---@async
---@param door agentbox.Serve
---@param seq? integer
---@param formats table[]
---@return table? answer
---@return agentbox.Err? err
function M.one(door, seq, formats)
  local group = math.type(seq) == "integer" and seq >= 1 and door.run:_group(seq)
  if not group then return nil, err.new("notfound", "there is no such group") end
  local text, problem = text_of(door, group, formats)
  if not text then return nil, problem end
  return { type = "application/json", body = text .. "\n" }
end

return M

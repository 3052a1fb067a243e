--- Groups as a trainer gets them: facts, and the rows of the formats that it asks for, as the exports write them.
local err = require "agentbox.err"
local export = require "agentbox.export"
local json = require "agentbox.json"
local log = require "agentbox.log"

local M = {}

--- The formats that a query names, checked: "verl,art" or "art:form=exchanges".
---@param text? string
---@return { name: string, format: string, options: table, reads?: string }[]?
---@return agentbox.Err? err
function M.formats(text)
  local list = {}
  for name in (text or ""):gmatch "[^,]+" do
    local format, options = name:match "^([%w_-]+)", {}
    for key, value in name:gmatch ":([%w_]+)=([%w_.-]+)" do options[key] = tonumber(value) or value end
    local lines, problem = export.lines { format = format or name, trajectories = {}, options = options }
    if not lines then return nil, problem end
    list[#list + 1] = { name = name, format = format, options = options, reads = export.format(format).reads }
  end
  return list
end

-- The rows of the formats as the text of a JSON object: what an export of these trajectories would write as lines. They
-- are large, and copied once.
local function rows(trajectories, formats)
  local parts = { "{" }
  for i, wanted in ipairs(formats) do
    local lines, problem = export.lines {
      format = wanted.format, trajectories = trajectories, options = wanted.options,
    }
    if not lines then return nil, problem end
    parts[#parts + 1] = ('%s%s:['):format(i > 1 and "," or "", json.encode(wanted.name))
    for n, line in ipairs(lines) do
      if n > 1 then parts[#parts + 1] = "," end
      parts[#parts + 1] = line -- its line feed is white space
    end
    parts[#parts + 1] = "]"
  end
  parts[#parts + 1] = "}"
  return table.concat(parts)
end

local FACTS = {
  "seq", "id", "task_id", "size", "members", "rewards", "outcomes", "partial", "zero_signal", "waste", "evicted", "why",
  "independent", "ranking",
}

local function versions(group, trajectories)
  local least, most = group.version_min, group.version_max
  if least then return least, most end
  for _, t in ipairs(trajectories) do
    if t.version_min and (not least or t.version_min < least) then least = t.version_min end
    if t.version_max and (not most or t.version_max > most) then most = t.version_max end
  end
  return least, most
end

-- What all of the formats together look at; nil: everything.
local function reads_of(formats)
  local reads = formats[1] and formats[1].reads or #formats == 0 and "line" or nil
  for _, wanted in ipairs(formats) do
    if not wanted.reads then return nil end
    if wanted.reads ~= reads then reads = "columns" end
  end
  return reads
end

-- The rows of a group, and the least and the most version in it. Its trajectories are read only when they are needed, and
-- converted once, though a poll be asked again.
local function made_of(door, group, formats, known)
  local names = {}
  for i, wanted in ipairs(formats) do names[i] = wanted.name end
  local key = ("%d %s"):format(group.seq, table.concat(names, ","))
  local made, problem = known[key] or door._made and door._made[key], nil
  if not made then
    local trajectories = {}
    if #formats > 0 or door.run.models.agent.version and not group.version_min then
      trajectories, problem = group:_trajectories(reads_of(formats))
    end
    if not trajectories then return nil, problem end
    made = {}
    made.version_min, made.version_max = versions(group, trajectories)
    made.rows, problem = rows(trajectories, formats)
    if not made.rows then return nil, problem end
  end
  known[key] = made
  return made
end

-- The text of a group, and whether it has become too old.
local function text_of(door, group, formats, known)
  local current, max = door.run.models.agent.version, door.run.opts.max_staleness
  local made, problem = made_of(door, group, formats, known)
  if not made then return nil, problem end
  local doc = json.object {}
  for _, name in ipairs(FACTS) do doc[name] = group[name] end
  for _, name in ipairs { "members", "rewards", "outcomes" } do
    doc[name] = json.array(table.move(group[name], 1, #group[name], 1, {}))
  end
  doc.version_min, doc.version_max = made.version_min, made.version_max
  doc.version = current
  doc.stale = max and current and doc.version_min and current - doc.version_min > max or false
  return ('%s,"formats":%s}'):format(json.encode(doc):sub(1, -2), made.rows), doc.stale
end

local function drop(door, group)
  door.run.tally.stale_groups = door.run.tally.stale_groups + 1
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
  local texts, known = {}, {}
  for group in door.run:_waiting(after) do
    local text, stale = text_of(door, group, formats, known)
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
  door._made = known -- of this answer, for whoever asks for it again
  return texts
end

local function body(door, texts)
  local run = door.run
  local head = json.encode(json.object {
    state = run.state, ended = #texts == 0 and door:_tell_end(), cursor = run.cursor,
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
  local text, problem = text_of(door, group, formats, {})
  if not text then return nil, problem end
  return { type = "application/json", body = text .. "\n" }
end

return M

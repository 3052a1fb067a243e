--- What fails alike: attempts without success, put together by what the verifier said, or by what broke.
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local text = require "agentbox.text"
local utf8x = require "agentbox.sys.utf8x"

local M = {}

--- So many kinds are listed, the most frequent first.
M.MAX_KINDS = 20
local HEAD = 200

local value_of = json.plain

-- What differs from run to run without meaning anything: times, addresses, ids.
local function steady(said)
  said = text.scrub(said):gsub("0x%x+", "0x"):gsub("%d+%.%d+ ?s%f[%W]", "_s"):gsub("%d+ms%f[%W]", "_ms")
  return (said:gsub("%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x+", "_"))
end

local function head_of(said)
  return utf8x.truncate_cp((steady(said:sub(1, 4 * HEAD)):gsub("%s+$", "")), HEAD)
end

--- The kind of a record that is no success.
---@param line table
---@return { key: string, exit_code?: integer, head: string, class: string }
function M.kind(line)
  local class = value_of(line.stop.class) or "policy"
  if line.reward.scored ~= true then
    local said = head_of(tostring(value_of(line.error) or value_of(line.stop.detail) or line.stop.reason))
    return { key = class .. "\0" .. said, head = said, class = class }
  end
  local verify = value_of(line.verify) or {}
  local said, exit = head_of(tostring(value_of(verify.stdout) or "")), value_of(verify.exit_code)
  return { key = ("%s\0%s"):format(tostring(exit), said), exit_code = exit, head = said, class = "policy" }
end

--- The most frequent kinds among some rows.
---@param all agentbox.Attempt[][]
---@return table[]
function M.of(all)
  local found, list = {}, {}
  for _, rows in ipairs(all) do
    for _, row in ipairs(rows) do
      local kind = row.kind
      if kind then
        local one = found[kind.key]
        if not one then
          one = { kind = kind, n = 0, row = row }
          found[kind.key], list[#list + 1] = one, one
        end
        one.n = one.n + 1
      end
    end
  end
  table.sort(list, function(a, b)
    if a.n ~= b.n then return a.n > b.n end
    return a.kind.key < b.kind.key
  end)
  local out = json.array {}
  for i = 1, math.min(#list, M.MAX_KINDS) do
    local one = list[i]
    out[i] = require "agentbox.suite.put"(json.object {}, "fingerprint", hash.sha256(one.kind.key):sub(1, 10), "n", one.n,
      "class", one.kind.class, "exit_code", one.kind.exit_code, "head", one.kind.head, "model_id", one.row.model,
      "task_id", one.row.task, "path", one.row.path)
  end
  return out
end

return M

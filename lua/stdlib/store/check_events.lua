--- Checks what a run said while it went on against what is stored: each rollout that it called recorded has a line.
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"

local M = {}

--- Checks the events of a run, after its lines.
---
--- A damaged event is no problem: nothing hangs on events.
---@async
---@nodiscard
---@param run_dir string
---@param bytes integer                       # of events.jsonl before the lines were read
---@param has fun(id: string): boolean        # whether a rollout has a line
---@param add fun(id: string, rule: string, where: string, msg: string)
---@return boolean? ok
---@return agentbox.Err? err
function M.check(run_dir, bytes, has, add)
  if bytes == 0 then return true end
  local path, n = run_dir .. "/events.jsonl", 0
  local file <close>, problem = lines.open(path)
  if not file then return nil, problem end
  for text, offset in file.next, file do
    if offset >= bytes then break end
    n = n + 1
    local event = json.decode(text)
    local told = json.is_object(event) and event.kind == "rollout" and type(event.id) == "string" and event.segment
    if told and not has(event.id) then
      add(event.id, "b", ("%s:%d"):format(path, n), "the run recorded this rollout, and it has no line")
    end
  end
  return true
end

return M

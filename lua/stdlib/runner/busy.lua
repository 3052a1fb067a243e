--- Whether a rollout's sandbox computes. One that does looks from outside like one that hangs, but for its CPU time.
local M = {}

-- A look tells something when the last one is so long ago; of that time a sandbox that computes has used so much. One
-- that only sleeps, or waits for the model, uses none.
local LOOK_S, SHARE = 1, 0.02

--- The CPU time that its sandbox has used; nil where nobody counts it. Asking a container's engine would take too long.
---@param one agentbox.Member
---@return number?
function M.cpu_s(one)
  local sb = one.rollout and one.rollout.sandbox
  local usage = sb and sb.kind == "native" and sb:usage()
  return usage and usage.cpu_s or nil
end

--- Whether it has computed since the last look. The first look at a sandbox, which there is nothing to compare with, says
--- yes; where nobody counts CPU time the answer is no.
---@param one agentbox.Member
---@param now number   # monotonic seconds
---@return boolean
function M.computes(one, now)
  local cpu_s, last = M.cpu_s(one), one.look
  if not cpu_s then return false end
  if not last or cpu_s < last.cpu_s then -- another sandbox's
    last = { at = now, cpu_s = cpu_s, computes = true }
  elseif now - last.at >= LOOK_S then
    last = { at = now, cpu_s = cpu_s, computes = cpu_s - last.cpu_s >= SHARE * (now - last.at) }
  end
  one.look = last
  return last.computes
end

return M

--- Clocks. Durations and deadlines use `monotonic`; `now` is for people and records.
local sys = require "agentbox.sys.time"

---@class agentbox.time
---@field monotonic fun(): number          # seconds of a clock that never jumps
---@field now fun(): number                # unix time in seconds, with a fraction
---@field iso fun(t: number): string       # "2026-01-02T03:04:05.000001Z"
---@field local_date fun(t: number): string # "2026-01-02 03:04:05" in the machine's zone
local M = {}
for name, fn in pairs(sys) do M[name] = fn end

---Seconds for a person: "320 ms", "4.2 s", "3 min 5 s", "2 h 10 min".
---@param s number
---@return string
function M.duration(s)
  if s < 1 then return ("%.0f ms"):format(s * 1000) end
  if s < 60 then return ("%.1f s"):format(s) end
  local whole = math.floor(s + 0.5)
  if whole < 3600 then return ("%d min %d s"):format(whole // 60, whole % 60) end
  return ("%d h %d min"):format(whole // 3600, whole % 3600 // 60)
end

return M

--- A sandbox that costs nothing, for measuring the engine alone: no files, and every command gives 2 kB at once. It is found
--- because a script's own folder comes first; the reference gets the same from reference.py.
local M = { name = "free", can_freeze = false }

local OUTPUT = ("x"):rep(2048)

local Raw = {}
Raw.__index = Raw

function Raw.id() return "free" end

function Raw.exec()
  return {
    exit_code = 0, stdout = OUTPUT, stderr = "", timed_out = false, oom = false, truncated = false, stdout_dropped = 0,
    stderr_dropped = 0, duration_s = 0, usage = { cpu_s = 0, max_rss_bytes = 0, wall_s = 0 },
  }
end

function Raw.kill_all() return true end

function Raw.tree() return {} end
Raw.list = Raw.tree

local function done() return true end
Raw.mkdir, Raw.remove, Raw.copy_tree = done, done, done

function Raw.close() end

---@return table raw
function M.create() return setmetatable({}, Raw) end

return M

--- A run of ten thousand trajectories as a page: CPU time, and the most memory it took.
local fs = require "agentbox.sys.fs"
local report = require "report"

local binary = assert(fs.realpath "/proc/self/exe")
local MEGABYTES = 325 -- some ten thousand

local function here()
  return debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "bench"
end

-- What the page took, as the process that made it saw it.
local function once(dir)
  local pipe = assert(io.popen(("%s script %s/render_once.lua %s/r %s/page.html"):format(binary, here(), dir, dir)))
  local cpu, peak, n, bytes = pipe:read("n", "n", "n", "n")
  assert(pipe:close(), "the page was not made")
  return cpu, peak, n, bytes
end

return function(rounds)
  local dir = assert(fs.tmpdir "agentbox-bench-render")
  local _ <close> = setmetatable({}, { __close = function() fs.remove(dir, true) end })
  assert(os.execute(("%s script %s/make_run.lua %s r %d 8 2 chat >/dev/null"):format(binary, here(), dir, MEGABYTES)))
  local seconds, peaks, made, many = {}, {}, nil, nil
  for i = 1, rounds do
    local cpu, peak, n, bytes = once(dir)
    seconds[i], peaks[i], made, many = cpu, peak, bytes, n
  end
  local cpu = report.quantile(seconds, 0.5)
  report.row { what = ("traj render of %d trajectories (%d MB), CPU; a page of %.1f MB"):format(many, MEGABYTES, made / 1e6),
    ours = report.us(cpu * 1e6), value = cpu, unit = "s", must = 5, better = "less" }
  local peak = report.quantile(peaks, 1)
  report.row { what = "the same, most memory", ours = ("%.0f MB"):format(peak), value = peak, unit = "MB", must = 200, better = "less" }
end

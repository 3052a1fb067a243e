-- Usage: agentbox script review_run.lua OUT REASON KILL. One decision; with KILL above 0 the process kills itself at its KILLth write.
local review = require "agentbox.generate.review"

local out, reason, at = arg[1], arg[2], tonumber(arg[3])
local count = 0
local fs = require "agentbox.sys.fs"
local open = fs.append_open

local function die()
  count = count + 1
  if count == at then os.execute "kill -9 $PPID" end
end

function fs.append_open(path)
  local file, problem = open(path)
  if not file then return nil, problem end
  return setmetatable({
    write = function(_, bytes)
      die()
      local ok, bad = file:write(bytes)
      die()
      return ok, bad
    end,
    sync = function()
      die()
      return file:sync()
    end,
  }, { __index = function(_, name) return function(_, ...) return file[name](file, ...) end end })
end

assert(review.decide(out, { "ada" }, "reject", reason))
print(reason)

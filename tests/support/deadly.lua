-- dofile "deadly.lua"(N): from now on the process kills itself at its Nth write of a batch: before it or after it by turns.
return function(at)
  if not at or at == 0 then return end
  local count = 0
  local function die() os.execute "kill -9 $PPID" end
  local function deadly(fn)
    return function(...)
      count = count + 1
      local mine = count
      if mine * 2 - 1 == at then die() end
      local result = table.pack(fn(...))
      if mine * 2 == at then die() end
      return table.unpack(result, 1, result.n)
    end
  end
  local log, fs = require "agentbox.store.log", require "agentbox.fs"
  local open = log.open
  function log.open(opts)
    local one, problem = open(opts)
    if one then one.append = deadly(one.append) end
    return one, problem
  end
  fs.rename = deadly(fs.rename)
end

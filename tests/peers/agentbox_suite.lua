--- `odd DIR` writes the odd suite, `hash DIR` prints our hash of one; loaded as a student it writes what is asked for.
local root = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"

if arg and arg[1] == "odd" then
  dofile(root .. "/../support/odd_suite.lua").write(arg[2])
elseif arg and arg[1] == "hash" then
  local suite = assert(require "agentbox.suite".load(arg[2]))
  local hash = require "agentbox.suite.canonical".content_hash(suite.manifest, suite.tasks)
  assert(hash == dofile(root .. "/../support/odd_suite.lua").CONTENT_HASH)
  print(hash)
end

return function(request)
  for _, message in ipairs(request.messages) do if message.role == "tool" then return "done" end end
  local command = request.session:find "#2" and "true" or "touch done"
  return { role = "assistant", content = "", tool_calls = { { name = "run_command", arguments = { command = command } } } }
end

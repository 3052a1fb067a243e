--- mcp_servers.lua DIR URL: rollouts whose tools are the reference servers in DIR/node_modules, and one at URL.
local ab = require "agentbox"

local dir, url = arg[1], arg[2]

local box, problem = ab.sandbox.create { limits = { disk_mb = 2048 } }
if not box then
  print("SKIP no native sandbox here: " .. problem.msg)
  return 77
end
assert(box:put(dir, "/srv"))
local layer <close> = assert(box:freeze())
local own = { layers = { layer }, limits = { disk_mb = 2048 } }

local function reference(name, more)
  local spec = {
    name = name, command = { "/srv/bin/node", ("/srv/node_modules/@modelcontextprotocol/server-%s/dist/index.js"):format(name) },
    sandbox = own,
  }
  for _, word in ipairs(more or {}) do table.insert(spec.command, word) end
  return spec
end

--- One rollout that makes these calls; the texts that the model read.
local function rollout(tools, calls)
  local script = { last = "done" }
  for i, call in ipairs(calls) do script[i] = { tool_calls = { { name = call[1], arguments = call[2] } } } end
  local traj = assert(ab.rollout.run {
    task = ab.task.new { task_id = "t", description = "Do it.", verifier = { type = "command", command = "true" } },
    model = ab.model.scripted(script), tools = "custom", custom_tools = tools, max_steps = 20,
  })
  assert(traj.reward == 1, traj.line.error or traj.stop_reason)
  local texts = {}
  for _, message in ipairs(traj.messages) do
    if message.role == "tool" then texts[#texts + 1] = message.content end
  end
  return texts
end

local function expect(text, part)
  assert(text:find(part, 1, true), ("%q is not in %q"):format(part, text))
end

local function ask_everything(tools, name)
  local texts = rollout(tools, {
    { name .. "_echo", { message = "hi" } }, { name .. "_get-sum", { a = 2, b = 3 } }, { name .. "_get-tiny-image", {} },
    { name .. "_trigger-long-running-operation", { duration = 1, steps = 2 } }, { name .. "_get-sum", { a = "two" } },
  })
  expect(texts[1], "Echo: hi")
  expect(texts[2], "The sum of 2 and 3 is 5.")
  expect(texts[3], "[image: image/png,")
  expect(texts[4], "Long running operation completed")
  expect(texts[5], "ERROR: ")
end

ask_everything(assert(ab.mcp.tools(reference "everything")), "everything")
print "everything, on stdio: ok"

ask_everything(assert(ab.mcp.tools { name = "far", url = url }), "far")
print "everything, behind a URL: ok"

local graph = rollout(assert(ab.mcp.tools(reference "memory")), {
  { "memory_create_entities", { entities = { { name = "moon", entityType = "body", observations = { "grey" } } } } },
  { "memory_search_nodes", { query = "moon" } },
})
expect(graph[2], "grey")
print "memory: ok"

local files = rollout(assert(ab.mcp.tools(reference("filesystem", { "/workspace" }))), {
  { "filesystem_write_file", { path = "/workspace/made.txt", content = "by a server" } },
  { "filesystem_read_text_file", { path = "/workspace/made.txt" } },
  { "filesystem_read_text_file", { path = "/etc/passwd" } },
})
expect(files[2], "by a server")
expect(files[3], "Access denied")
print "filesystem: ok"

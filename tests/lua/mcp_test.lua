--- Servers of the Model Context Protocol as tools: good ones, and what bad ones can do to a rollout.
local ab = require "agentbox"
local err = require "agentbox.err"
local lu = require "luaunit"
local test = require "agentbox.test"

local M = {}

local support = (arg[0]:match "^(.*/)" or "./") .. "../support/"
local source = assert(ab.fs.read(support .. "mcp_server.py"))

function M.setUp()
  local sb, problem = ab.sandbox.create {}
  if not sb then test.skip("no native sandbox here: " .. problem.msg) end
  sb:close()
end

local function server(kind, more)
  local spec = { name = "m", command = { "python3", "-c", source, kind }, timeout_s = 20 }
  for key, value in pairs(more or {}) do spec[key] = value end
  return spec
end

local function task(check)
  return ab.task.new { task_id = "t", description = "Do it.", verifier = { type = "command", command = check or "true" } }
end

--- A rollout that makes these calls, one a turn; gives the trajectory and the texts that the model read.
local function rollout(tools, calls, check)
  local script = { last = "done" }
  for i, call in ipairs(calls) do script[i] = { tool_calls = { { name = call[1], arguments = call[2] or {} } } } end
  local traj = assert(ab.rollout.run {
    task = task(check), model = ab.model.scripted(script), tools = "custom", custom_tools = tools, max_steps = 20,
  })
  local texts = {}
  for _, message in ipairs(traj.messages) do
    if message.role == "tool" then texts[#texts + 1] = message.content end
  end
  return traj, texts
end

function M.test_tools_of_a_program_are_offered_called_and_recorded()
  local tools = assert(ab.mcp.tools(server "good"))
  lu.assertEquals(tools[1].name, "m_echo")
  local traj, texts = rollout(tools, { { "m_echo", { text = "hi" } }, { "m_count" }, { "m_count" }, { "m_fail" } })
  lu.assertEquals(texts, { "hi", "2", "3", "no such thing" }) -- one process for all tools
  lu.assertEquals({ traj.reward, #traj.line.tool_runs }, { 1.0, 4 })
  local offered = ab.json.decode(ab.json.encode(traj.line.tools))
  lu.assertEquals(offered[1]["function"].parameters.required, { "text" })
  lu.assertTrue(traj.line.tool_runs[4].is_error)
  local modules = ab.json.decode(ab.json.encode(traj.line.modules))
  lu.assertEquals(modules[#modules].name, "mcp:m")
  lu.assertStrContains(modules[#modules].from, "(test 1, protocol 2025-06-18)")
end

function M.test_each_rollout_has_a_server_of_its_own()
  local tools = assert(ab.mcp.tools(server "good"))
  local seen = ab.async.each({ 1, 2, 3 }, function()
    local _, texts = rollout(tools, { { "m_count" }, { "m_count" } })
    return table.concat(texts, " ")
  end)
  lu.assertEquals(seen, { "1 2", "1 2", "1 2" })
end

function M.test_inside_means_the_rollouts_own_files()
  local command = { "sh", "-c", 'touch seen && exec python3 -c "$0" good', source }
  local tools = assert(ab.mcp.tools(server("good", { inside = true, command = command })))
  local traj = rollout(tools, { { "m_echo", { text = "x" } } }, "test -e seen")
  lu.assertEquals(traj.reward, 1.0)
end

function M.test_every_kind_of_content_becomes_text()
  local _, texts = rollout(assert(ab.mcp.tools(server "good")), { { "m_shapes" } })
  lu.assertEquals(texts[1], "words\n[image: image/png, 3 bytes, not shown]\n[resource file:///a]\ninside\n"
    .. "[link to resource file:///b: b]\n[content of an unknown kind]\n[content of an unknown kind]")
end

function M.test_only_chooses_and_a_missing_one_is_named()
  local tools = assert(ab.mcp.tools(server("good", { only = { "count" } })))
  lu.assertEquals({ #tools, tools[1].name }, { 1, "m_count" })
  local none, problem = ab.mcp.tools(server("good", { only = { "nope" } }))
  lu.assertNil(none)
  lu.assertStrContains(problem.msg, 'MCP server m: has no tool "nope"')
end

function M.test_chatter_pings_and_strange_answers_are_read_past()
  local _, texts = rollout(assert(ab.mcp.tools(server "chatty")), { { "m_echo", { text = "through" } } })
  lu.assertEquals(texts, { "through" })
end

function M.test_what_cannot_be_offered_is_refused_before_a_rollout()
  for kind, said in pairs {
    stillborn = "cannot find my module", two = "two of its tools would be called m_a_b", schemaless = "bare: inputSchema",
    many = "more than 256 tools", endless = "pages",
  } do
    local tools, problem = ab.mcp.tools(server(kind, kind == "endless" and { name = "e" } or nil))
    lu.assertNil(tools, kind)
    lu.assertEquals(problem.code, "config", kind)
    lu.assertStrContains(problem.msg, said)
  end
end

function M.test_a_server_that_never_answers_has_a_deadline()
  local tools, problem = ab.mcp.tools(server("silent", { start_timeout_s = 0.3 }))
  lu.assertNil(tools)
  lu.assertStrContains(problem.msg, "no answer to initialize within 0.3 s")
end

function M.test_death_is_read_by_the_model_and_the_next_call_finds_a_new_server()
  local traj, texts = rollout(assert(ab.mcp.tools(server "good")), { { "m_count" }, { "m_die" }, { "m_count" } })
  lu.assertStrContains(texts[2], "the server ended with status 3; it said:\nout of luck")
  lu.assertEquals(texts[3], "[the server was started anew: what it knew is gone]\n1")
  lu.assertEquals(traj.reward, 1.0)
end

function M.test_a_hanging_call_ends_alone_and_a_late_answer_is_not_the_next_ones()
  local tools = assert(ab.mcp.tools(server("good", { timeout_s = 0.5 })))
  local _, texts = rollout(tools, { { "m_late" }, { "m_echo", { text = "mine" } }, { "m_hang" }, { "m_count" } })
  lu.assertStrContains(texts[1], "no answer to tools/call within 0.5 s")
  lu.assertEquals({ texts[2], texts[4] }, { "mine", "2" })
end

function M.test_floods_are_cut_and_the_rollout_goes_on()
  for kind, said in pairs { flood = "messages and no answer", long = "bytes" } do
    local traj, texts = rollout(assert(ab.mcp.tools(server(kind))), { { "m_echo", { text = "x" } } })
    lu.assertStrContains(texts[1], said)
    lu.assertEquals(traj.reward, 1.0)
  end
end

function M.test_a_program_that_stops_starting_is_no_score()
  local tools = assert(ab.mcp.tools(server("good", { name = "gone" })))
  local broken = ab.tool.define {
    api = 1, name = tools[1].name, description = "d", parameters = tools[1].parameters,
    open = function(ctx)
      return require "agentbox.mcp.session".enter(server("stillborn", { start_timeout_s = 20 }), ctx)
    end,
    run = function(_, args, held) return held:call("echo", args) end, close = function(held) held:leave() end,
  }
  local traj = rollout({ broken }, { { "gone_echo", { text = "x" } } })
  lu.assertEquals({ traj.final_status, traj.failure_class, traj.reward }, { "error", "sandbox", nil })
  lu.assertStrContains(traj.line.error, "MCP server m does not start")
end

-- ---------------------------------------------------------------- behind a URL

local function own_pid()
  local file <close> = assert(io.open "/proc/self/stat")
  return file:read "n"
end

local function behind_url(kind)
  local pipe <close> = assert(io.popen(("python3 %smcp_server.py %s --http %d &"):format(support, kind, own_pid())))
  return { name = "u", url = ("http://127.0.0.1:%s/mcp"):format(assert(pipe:read "l")), timeout_s = 20 }
end

function M.test_a_url_answers_with_json_or_with_events()
  for _, kind in ipairs { "good", "events" } do
    local _, texts = rollout(assert(ab.mcp.tools(behind_url(kind))), { { "u_echo", { text = kind } }, { "u_fail" } })
    lu.assertEquals(texts, { kind, "no such thing" })
  end
end

function M.test_a_forgotten_session_is_begun_again()
  local _, texts = rollout(assert(ab.mcp.tools(behind_url "forgetful")), { { "u_count" }, { "u_echo", { text = "x" } } })
  lu.assertEquals(texts, { "1", "[the server was started anew: what it knew is gone]\nx" })
end

function M.test_a_url_that_fails_is_no_score()
  for kind, said in pairs { broken = "HTTP status 500", cut = "stream ended before the answer" } do
    local traj = rollout(assert(ab.mcp.tools(behind_url(kind))), { { "u_echo", { text = "x" } } })
    lu.assertEquals({ traj.final_status, traj.failure_class, traj.reward }, { "error", "sandbox", nil })
    lu.assertStrContains(traj.line.error, said)
  end
end

-- ---------------------------------------------------------------- files and misuse

function M.test_a_file_of_servers_is_a_custom_tool()
  local dir = assert(ab.fs.tmpdir "mcp-test-")
  local path = dir .. "/servers.json"
  local doc = { mcpServers = { m = { command = "python3", args = { "-c", source, "good" }, env = { A = "${HOME}" } } } }
  assert(ab.fs.write(path, ab.json.encode(doc)))
  local _, texts = rollout({ path }, { { "m_echo", { text = "from a file" } } })
  lu.assertEquals(texts, { "from a file" })
  doc.mcpServers.m.comand = "x"
  assert(ab.fs.write(path, ab.json.encode(doc)))
  local tools, problem = ab.mcp.load(path)
  lu.assertNil(tools)
  lu.assertStrContains(problem.msg, path)
  lu.assertStrContains(problem.msg, "comand")
  ab.fs.remove(dir, { recursive = true })
end

function M.test_misuse_raises()
  for _, spec in ipairs {
    { name = "x" }, { name = "x y", command = { "a" } }, { name = "x", command = { "a" }, url = "http://127.0.0.1" },
    { name = "x", url = "ftp://example.org" }, { name = "x", url = "http://example.org", env = {} },
  } do
    local ok, problem = pcall(ab.mcp.tools, spec)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(problem), "mcp.tools: ")
    lu.assertFalse(err.is(problem))
  end
end

return M

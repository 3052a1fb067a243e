--- A run's pages while it goes on: rows as they come, bodies when they are asked for, and who may come in.
local fs = require "agentbox.sys.fs"
local http = require "agentbox.http"
local json = require "agentbox.json"
local lu = require "luaunit"
local store = require "agentbox.store"
local view = require "agentbox.view"
local made = dofile((arg[0]:gsub("lua/[^/]*$", "support/rollouts.lua")))

local M = {}
local dir

function M.setUp() dir = assert(fs.tmpdir "agentbox-view") end

function M.tearDown() assert(fs.remove(dir, true)) end

local function get(at, path, opts)
  local request = { url = at.url .. path, proxy = false, keep_alive = false }
  for key, value in pairs(opts or {}) do request[key] = value end
  return assert(http.request(request))
end

local function json_of(at, path) return assert(json.decode(get(at, path).body)) end

-- Follows the events until so many rows are known.
local function wait_for(at, n)
  local stream <close> = assert(http.open { url = at.url .. "/api/events", proxy = false, keep_alive = false, timeout_s = 30 })
  for event in http.events(stream) do
    local state = json.decode(event.data)
    if state and state.n >= n and not state.reading then return state end
  end
  lu.fail "the events ended"
end

function M.test_rows_come_while_the_run_goes_on()
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  local at <close> = assert(view.open { path = s.run_dir, state = function() return { state = "running", total = 9 } end })
  lu.assertEquals(wait_for(at, 0).n, 0)
  assert(s:append(made.sample { id = "a" }:finish()))
  wait_for(at, 1)
  assert(s:append(made.sample { id = "b" }:finish { error = "<b>" }))
  local state = wait_for(at, 2)
  lu.assertEquals({ state.state, state.total, state.damaged }, { "running", 9, 0 })
  local rows = json_of(at, "/api/rows?from=0")
  lu.assertEquals({ rows.n, rows.from, #rows.parts, rows.parts[1].n }, { 2, 0, 1, 2 })
  lu.assertEquals(rows.parts[1].id, { "a", "b" })
  lu.assertEquals(json_of(at, "/api/body?row=1").error, "<b>")
  lu.assertEquals(json_of(at, "/api/figures").all.success.value, 1.0)
  lu.assertEquals(at:stats().trajectories, 2)
end

function M.test_what_was_sent_is_given_byte_for_byte()
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  local t = made.sample({ id = "a" }, { output = ("long "):rep(20000) }):finish()
  local wanted = assert(t:body(t.line.calls[2], "request"))
  assert(s:append(t))
  local at <close> = assert(view.open { path = s.run_dir })
  wait_for(at, 1)
  local wire = json_of(at, "/api/wire?row=0&call=1")
  lu.assertEquals(wire.request.body, wanted)
  lu.assertEquals(wire.request.bytes, #wanted)
  for _, path in ipairs { "/api/body?row=1", "/api/body?row=-1", "/api/body", "/api/wire?row=0&call=7", "/api/wire?row=0", "/etc/passwd" } do
    lu.assertEquals(get(at, path).status, 404, path)
  end
  lu.assertEquals(get(at, "/api/rows?from=-1").status, 400)
  lu.assertEquals(get(at, "/", { method = "POST", body = "x" }).status, 405)
end

function M.test_many_rows_come_in_parts_without_doubles()
  local path = dir .. "/many.jsonl"
  local line = json.encode(require "agentbox.formats.agentbox".convert(made.sample { id = "a" }:finish())) .. "\n"
  assert(fs.write(path, line:rep(2500)))
  local at <close> = assert(view.open { path = path })
  wait_for(at, 2500)
  local have = 0
  for _ = 1, 5 do
    local rows = json_of(at, "/api/rows?from=" .. have)
    local skip = have - rows.from
    for _, part in ipairs(rows.parts) do have, skip = have + math.max(0, part.n - skip), math.max(0, skip - part.n) end
    if have == rows.n then break end
  end
  lu.assertEquals(have, 2500)
  lu.assertEquals(json_of(at, "/api/rows?from=1700").from, 1000)
  lu.assertEquals(#json_of(at, "/api/rows?from=99999").parts, 1)
end

function M.test_a_line_that_is_being_written_is_none_yet()
  local path = dir .. "/t.jsonl"
  local line = json.encode(require "agentbox.formats.agentbox".convert(made.sample { id = "a" }:finish())) .. "\n"
  assert(fs.write(path, line .. line:sub(1, 100)))
  local at <close> = assert(view.open { path = path })
  lu.assertEquals({ wait_for(at, 1).n, at:stats().damaged }, { 1, 0 })
  local file <close> = assert(io.open(path, "ab"))
  assert(file:write(line:sub(101), "no trajectory\n"))
  assert(file:flush())
  wait_for(at, 2)
  lu.assertEquals(at:stats().damaged, 1)
end

function M.test_a_document_that_is_none_is_counted_once()
  assert(fs.mkdir(dir .. "/docs"))
  assert(fs.write(dir .. "/docs/a.json", '{"a": 1}'))
  assert(fs.write(dir .. "/docs/b.json", json.encode(require "agentbox.formats.agentbox".convert(made.sample { id = "b" }:finish()))))
  local at <close> = assert(view.open { path = dir .. "/docs" })
  lu.assertEquals({ wait_for(at, 1).damaged, json_of(at, "/api/rows?from=0").n }, { 1, 1 })
  assert(fs.write(dir .. "/docs/c.json", json.encode(require "agentbox.formats.agentbox".convert(made.sample { id = "c" }:finish()))))
  lu.assertEquals(wait_for(at, 2).damaged, 1)
end

function M.test_the_page_asks_nobody_but_its_server()
  local s <close> = assert(store.open(dir, { run_id = "</title>", agentbox_json = false }))
  local at <close> = assert(view.open { path = s.run_dir, title = "</title><script>" })
  local page = get(at, "/")
  local policy = page.headers:get "Content-Security-Policy"
  lu.assertStrContains(policy, "connect-src 'self'")
  lu.assertStrContains(policy, "frame-ancestors 'none'")
  lu.assertNil(policy:find "unsafe")
  lu.assertEquals({ page.headers:get "X-Content-Type-Options", page.headers:get "Cache-Control" }, { "nosniff", "no-store" })
  lu.assertEquals(select(2, page.body:gsub("</title>", "")), 1)
end

-- A page of another site that made its name lead here is refused by the name.
function M.test_names_that_are_not_its_own_are_refused()
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  local at <close> = assert(view.open { path = s.run_dir })
  for _, host in ipairs { "evil.example", "evil.example:80", "127.0.0.1.evil.example" } do
    lu.assertEquals(get(at, "/api/state", { headers = { Host = host } }).status, 421, host)
  end
  lu.assertEquals(get(at, "/api/state", { headers = { Host = "localhost:1" } }).status, 200)
end

function M.test_a_token_is_asked_for_and_becomes_a_cookie()
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  local none, problem = view.open { path = s.run_dir, listen = "0.0.0.0:0" }
  lu.assertEquals({ none, problem.code }, { nil, "badarg" })
  local at <close> = assert(view.open { path = s.run_dir, token = "t0ken" })
  lu.assertEquals(get(at, "/").status, 401)
  lu.assertEquals(get(at, "/api/state").status, 401)
  lu.assertEquals(get(at, "/?token=wrong").status, 401)
  local first = get(at, "/?token=t0ken", { max_redirects = 0 })
  lu.assertEquals({ first.status, first.headers:get "Location" }, { 303, "/" })
  local cookie = first.headers:get "Set-Cookie"
  lu.assertStrContains(cookie, "HttpOnly")
  lu.assertEquals(get(at, "/api/state", { headers = { Cookie = cookie:match "^[^;]+" } }).status, 200)
end

function M.test_several_viewers_follow_and_leave()
  local s <close> = assert(store.open(dir, { run_id = "r", agentbox_json = false }))
  local at <close> = assert(view.open { path = s.run_dir })
  local streams = {}
  for i = 1, 5 do streams[i] = assert(http.open { url = at.url .. "/api/events", proxy = false, keep_alive = false }) end
  assert(s:append(made.sample { id = "a" }:finish()))
  for _, stream in ipairs(streams) do
    for event in http.events(stream) do
      if json.decode(event.data).n == 1 then break end
    end
  end
  lu.assertEquals(at:stats().viewers, 5)
  for _, stream in ipairs(streams) do stream:close() end
  wait_for(at, 1)
end

function M.test_what_is_not_there_is_said_at_once()
  local none, problem = view.open { path = dir .. "/nothing" }
  lu.assertEquals({ none, problem.code }, { nil, "notfound" })
  lu.assertErrorMsgContains("unknown key", function() return view.open { path = dir, port = 1 } end)
end

return M

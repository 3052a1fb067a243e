-- agentbox.http_server: what handlers see and give, streams, who may come in, and what becomes of clients that leave.
local async = require "agentbox.async"
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.fs"
local http = require "agentbox.http"
local json = require "agentbox.json"
local server = require "agentbox.http_server"
local test = require "agentbox.test"
local wire = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/wire.lua")

local function serve(routes, opts)
  local all = { listen = "127.0.0.1:0", routes = routes }
  for key, value in pairs(opts or {}) do all[key] = value end
  return assert(server.serve(all))
end

local function get(at, path, opts)
  local request = { url = at.url .. path, proxy = false, keep_alive = false }
  for key, value in pairs(opts or {}) do request[key] = value end
  return assert(http.request(request))
end

local M = {}

function M.test_what_a_handler_gives_becomes_an_answer()
  local at <close> = serve {
    ["GET /text"] = function() return "hello" end,
    ["GET /json"] = function() return { json = { a = 1 } } end,
    ["POST /made"] = function(req) return { status = 201, body = req:body(), type = "x/y", headers = { ["X-A"] = "1", ETag = "e" } } end,
    ["GET /nothing"] = function() end,
    ["GET /missing"] = function() return nil, err.new("notfound", "no such run") end,
    ["GET /busy"] = function() error(err.new("busy", "later")) end,
    ["GET /boom"] = function() error "secret detail" end,
    ["GET /odd"] = function() return 5 end,
  }
  local text = get(at, "/text")
  test.eq({ text.status, text.body, text.headers:get "Content-Type" }, { 200, "hello", "text/plain; charset=utf-8" })
  test.eq(json.decode(get(at, "/json").body).a, 1)
  local made = get(at, "/made", { method = "POST", body = "a\0b" })
  test.eq({ made.status, made.body, made.headers:get "X-A", made.headers:get "Content-Type" }, { 201, "a\0b", "1", "x/y" })
  test.eq(get(at, "/nothing").status, 204)
  local missing = get(at, "/missing")
  test.eq({ missing.status, json.decode(missing.body).error.msg }, { 404, "no such run" })
  test.eq(get(at, "/busy").status, 503)
  local boom = get(at, "/boom")
  test.eq(boom.status, 500)
  test.ok(not boom.body:find "secret", "a defect tells the client nothing")
  test.eq(get(at, "/odd").status, 500)
  test.eq(get(at, "/text", { method = "HEAD" }).body, "")
  test.eq(get(at, "/text", { method = "HEAD" }).headers:get "Content-Length", "5")
end

function M.test_routes_name_parts_of_the_path()
  local at <close> = serve {
    ["GET /runs/:id"] = function(req) return { json = { id = req.params.id, q = assert(req:query()) } } end,
    ["GET /runs/all"] = function() return "literal" end,
    ["PUT /runs/:id"] = function() return "put" end,
    ["GET /files/*path"] = function(req) return req.params.path end,
  }
  local one = json.decode(get(at, "/runs/a%20b%2Fc?x=1&y=%41+b").body)
  test.eq({ one.id, one.q.x, one.q.y }, { "a b/c", "1", "A b" })
  test.eq(get(at, "/runs/all").body, "literal")
  test.eq(get(at, "/files/a/b.txt").body, "a/b.txt")
  local other = get(at, "/runs/x", { method = "DELETE" })
  test.eq({ other.status, other.headers:get "Allow" }, { 405, "GET, PUT" })
  test.eq(get(at, "/nowhere").status, 404)
  test.eq(get(at, "/runs/%zz").status, 400)
  test.eq(get(at, "/runs/%00").status, 400)
end

function M.test_requests_follow_each_other_on_a_connection()
  local at <close> = serve { ["POST /n"] = function(req) async.sleep(0); return req:body() end }
  local c <close> = wire.connect(at)
  local one = "POST /n HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"
  c:send(one .. "1" .. one .. "2" .. one .. "3")
  for i = 1, 3 do test.eq(c:response().body, tostring(i)) end
  c:send "POST /n HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\n\r\n"
  local last = c:response()
  test.eq({ last.body, last.fields.connection }, { "ab", "close" })
  test.eq(c:rest(), "")
  test.eq(at:stats().accepted, 1)
end

function M.test_a_body_is_asked_for_only_when_it_is_wanted()
  local at <close> = serve({ ["POST /x"] = function(req) return req:body() end }, { body_bytes = 10 })
  local c <close> = wire.connect(at)
  c:send "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
  test.eq(c:head().status, 100)
  c:send "ab"
  test.eq(c:response().body, "ab")
  c:send "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n"
  test.eq(c:response().status, 413)
  test.eq(c:rest(), "")
end

function M.test_http_1_0_gets_streams_without_chunks()
  local at <close> = serve { ["GET /s"] = function(req) local s = req:stream() s:write "ab" s:write "cd" end }
  local c <close> = wire.connect(at)
  c:send "GET /s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
  local head = c:head()
  test.eq({ head.status, head.fields["transfer-encoding"], head.fields.connection }, { 200, nil, "close" })
  test.eq(c:rest(), "abcd")
end

function M.test_events_arrive_and_ping()
  local at <close> = serve({
    ["GET /e"] = function(req)
      local events = req:events { retry_s = 2 }
      events:send { data = "two\nlines", event = "x", id = 7 }
      events:send { data = { a = 1 } }
      fiber.park()
    end,
  }, { ping_s = 0.01 })
  local stream = assert(http.open { url = at.url .. "/e", proxy = false })
  local next_event = http.event_reader(stream)
  local one = next_event()
  test.eq({ one.event, one.data, one.id }, { "x", "two\nlines", "7" })
  test.eq(next_event().data, '{"a":1}')
  local bytes = assert(stream:read())
  test.contains(bytes, ": \n\n")
  stream:close()
end

function M.test_a_slow_reader_holds_only_its_writer()
  local written, left = 0, false
  local at <close> = serve {
    ["GET /flood"] = function(req)
      local stream <close> = setmetatable({ s = req:stream() }, { __close = function() left = true end })
      local piece = ("x"):rep(65536)
      while stream.s:write(piece) do written = written + 1 end
    end,
    ["GET /quick"] = function() return "ok" end,
  }
  local c = wire.connect(at)
  c:send "GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n"
  test.eq(c:head().status, 200)
  local before
  repeat -- until the pipe is full
    before = written
    for _ = 1, 20 do test.eq(get(at, "/quick").body, "ok") end
  until written == before
  test.ok(written < 400, written)
  c:close()
  wire.wait(function() return left end)
end

function M.test_a_client_that_leaves_cancels_its_handler()
  local why, began
  local at <close> = serve {
    ["GET /hang"] = function()
      local _ <close> = setmetatable({}, { __close = function(_, e) why = e end })
      began = true
      fiber.park()
    end,
  }
  local c = wire.connect(at)
  c:send "GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n"
  wire.wait(function() return began end)
  c:close()
  wire.wait(function() return why end)
  test.eq({ why.code, why.msg }, { "cancelled", "the client has left" })
  test.eq(at:stats().gone, 1)
end

function M.test_a_handler_has_a_deadline()
  local at <close> = serve({ ["GET /hang"] = function() fiber.park() end }, { timeout_s = 0.02 })
  local response = get(at, "/hang")
  test.eq({ response.status, json.decode(response.body).error.code }, { 504, "timeout" })
end

function M.test_a_handler_that_fails_in_the_middle_is_seen_by_its_client()
  local at <close> = serve { ["GET /half"] = function(req) req:stream():write "half" error "boom" end }
  test.fails("network", http.request { url = at.url .. "/half", proxy = false })
end

function M.test_a_token_is_needed_where_one_is_set()
  local at <close> = serve({ ["GET /x"] = function() return "in" end, ["GET /health"] = function() return "ok" end },
    { token = "s3cret-token", open = { "/health" } })
  test.eq(get(at, "/x").status, 401)
  test.eq(get(at, "/x").headers:get "WWW-Authenticate", "Bearer")
  for _, wrong in ipairs { "Bearer s3cret-toke", "Bearer s3cret-tokenx", "Bearer ", "s3cret-token", "Basic s3cret-token" } do
    test.eq(get(at, "/x", { headers = { Authorization = wrong } }).status, 401, wrong)
  end
  test.eq(get(at, "/x", { headers = { Authorization = "bearer s3cret-token" } }).body, "in")
  test.eq(get(at, "/health").body, "ok")
  test.eq(get(at, "/x?token=s3cret-token").status, 401, "without a cookie none is taken from an address")
end

function M.test_a_browser_gets_a_cookie_for_its_token()
  local at <close> = serve({ ["GET /x"] = function(req) return req.target end }, { token = "s3cret-token", cookie = "door" })
  local first = get(at, "/x?a=1&token=s3cret-token", { max_redirects = 0 })
  test.eq({ first.status, first.headers:get "Location" }, { 303, "/x?a=1" })
  local cookie = first.headers:get "Set-Cookie"
  test.contains(cookie, "HttpOnly; SameSite=Strict")
  test.eq(get(at, "/x?a=1", { headers = { Cookie = "other=1; " .. cookie:match "^[^;]*" } }).body, "/x?a=1")
  test.eq(get(at, "/x", { headers = { Cookie = "door=wrong" } }).status, 401)
  test.eq(get(at, "/x?token=wrong").status, 401)
end

function M.test_pages_of_other_sites_are_kept_out()
  local at <close> = serve { ["POST /x"] = function() return "in" end, ["GET /x"] = function() return "in" end }
  test.eq(get(at, "/x", { headers = { Host = "evil.example" } }).status, 421)
  test.eq(get(at, "/x", { method = "POST", headers = { Origin = "http://evil.example" } }).status, 403)
  test.eq(get(at, "/x", { method = "POST", headers = { Origin = at.url } }).body, "in")
  local named <close> = serve({ ["GET /x"] = function() return "in" end }, { hosts = { "box.example" } })
  test.eq(get(named, "/x", { headers = { Host = "Box.example:80" } }).body, "in")
end

function M.test_only_the_loopback_is_without_a_token()
  local refused = test.fails("badarg", server.serve { listen = "0.0.0.0:0", handler = print })
  test.contains(refused.msg, "needs a token")
  local at <close> = serve({ ["GET /"] = function() return "x" end }, { listen = "0.0.0.0:0", token = "long enough" })
  test.match(at.address, "^0%.0%.0%.0:%d+$")
end

function M.test_a_unix_socket_is_its_owners_alone_and_outlives_nothing()
  local dir = assert(fs.tmpdir "http-server-test")
  local path = dir .. "/s"
  for _ = 1, 2 do -- the second finds what the first would have left
    local at <close> = serve({ ["GET /x"] = function(req) return req:peer() end }, { listen = "unix:" .. path })
    test.eq(assert(fs.stat(path)).mode & 511, 384)
    test.eq(assert(http.request { url = at.url .. "/x", unix_socket = path, keep_alive = false }).body, "unix")
    test.fails("sys", server.serve { listen = "unix:" .. path, handler = print })
  end
  assert(fs.remove(dir, true))
end

function M.test_stop_lets_what_runs_end()
  local go, began = false, false
  local at <close> = serve {
    ["GET /x"] = function() began = true; wire.wait(function() return go end) return "done" end,
    ["GET /e"] = function(req) req:events():send { data = "1" } fiber.park() end,
  }
  local answer
  async.scope(function(scope)
    scope:spawn(function() answer = get(at, "/x") end)
    local stream = assert(http.open { url = at.url .. "/e", proxy = false })
    wire.wait(function() return began end)
    scope:spawn(function() at:stop(30) end)
    local events = {}
    for event in http.events(stream) do events[#events + 1] = event.data end
    test.eq(events, { "1" })
    go = true
  end)
  test.eq({ answer.status, answer.body, answer.headers:get "Connection" }, { 200, "done", "close" })
  test.fails("network", http.request { url = at.url .. "/x", proxy = false })
end

function M.test_a_hub_tells_many_and_waits_for_none()
  local hub = server.hub()
  local at <close> = serve { ["GET /e"] = function(req) hub:add(req, { { data = "hello" } }) end }
  local streams = {}
  for i = 1, 3 do streams[i] = assert(http.open { url = at.url .. "/e", proxy = false }) end
  local stuck <close> = wire.connect(at)
  stuck:send "GET /e HTTP/1.1\r\nHost: localhost\r\n\r\n"
  test.eq(stuck:head().status, 200)
  test.eq(hub.count, 4)
  local readers = {}
  for i = 1, 3 do
    readers[i] = http.event_reader(streams[i])
    test.eq(readers[i]().data, "hello")
  end
  local big, sent = ("x"):rep(60000), 0
  repeat -- until the one that does not read is cut off
    sent = sent + 1
    hub:send { data = big, id = sent }
    for i = 1, 3 do test.eq(readers[i]().id, tostring(sent)) end
  until hub.count == 3
  test.ok(sent < 400, sent)
  streams[1]:close()
  wire.wait(function() return at:stats().connections == 2 end)
  hub:send { data = "x" }
  test.eq(hub.count, 2)
  hub:close()
  for i = 2, 3 do
    test.eq(readers[i]().data, "x")
    test.eq(readers[i](), nil)
    streams[i]:close()
  end
end

-- More than one of the client's multi handles has: each keeps its connections, and those opened first are used first.
function M.test_hundreds_at_once_use_their_connections_again()
  local COUNT, inside, here = 300, 0, {}
  local at <close> = serve {
    ["GET /together"] = function() -- answers when all are there
      inside = inside + 1
      here[#here + 1] = fiber.current()
      if inside % COUNT > 0 then
        fiber.park()
        return ""
      end
      for _, one in ipairs(here) do one:wake() end
      here = {}
      return ""
    end,
    ["GET /alone"] = function() return "" end,
  }
  local numbers = {}
  for i = 1, COUNT do numbers[i] = i end
  local function wave() async.each(numbers, function() test.eq(get(at, "/together", { keep_alive = true }).status, 200) end) end
  for _ = 1, 3 do wave() end
  for _ = 1, 20 do get(at, "/alone", { keep_alive = true }) end
  test.eq({ at:stats().accepted, at:stats().requests }, { COUNT, 3 * COUNT + 20 })
end

-- A connection that nobody uses stays on the loop: its end is seen, and the next request has another.
function M.test_a_kept_connection_that_the_server_closes()
  local routes = { ["GET /text"] = function() return "hello" end }
  local at = serve(routes)
  local where = at.url:match "//(.*)$"
  for round = 1, 3 do
    for _ = 1, 3 do test.eq(get(at, "/text", { keep_alive = true }).body, "hello") end
    test.eq({ at:stats().accepted, at:stats().requests }, { 1, 3 }, round)
    at:close()
    fiber.sleep(0) -- the loop sees it
    at = serve(routes, { listen = where })
  end
  at:close()
end

function M.test_misuse_raises_in_the_callers_name()
  test.raises("unknown option 'prot'", server.serve, { listen = 0, handler = print, prot = 1 })
  test.raises("either 'handler' or 'routes'", server.serve, { listen = 0 })
  test.raises('route "/x"', server.serve, { listen = 0, routes = { ["/x"] = print } })
  test.fails("badarg", server.serve { listen = "nowhere", handler = print })
  test.fails("sys", server.serve { listen = "192.0.2.1:0", handler = print, token = "tok" })
  local at <close> = serve {
    ["GET /split"] = function() return { headers = { ["X-A"] = "1\r\nX-B: 2" } } end,
    ["GET /ours"] = function() return { headers = { Connection = "close" } } end,
  }
  test.eq(get(at, "/split").status, 400)
  test.eq(get(at, "/ours").status, 400)
end

return M

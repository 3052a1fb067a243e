-- agentbox.http against a local server: values, phases, deadlines, streams, cancel.
local async = require "agentbox.async"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local http = require "agentbox.http"
local json = require "agentbox.json"
local test = require "agentbox.test"

local fakellm = dofile((arg[0]:match "^(.*/)" or "./") .. "../support/fakellm.lua")

local function url(path) return fakellm.address() .. path end

local function get(path, opts)
  local request = { url = url(path), proxy = false }
  for key, value in pairs(opts or {}) do request[key] = value end
  return http.request(request)
end

local M = {}

function M.test_a_response_is_a_value_whatever_its_status()
  local response = assert(get "/nowhere")
  test.eq(response.status, 404)
  test.eq(response.headers:get "content-TYPE", "application/json")
  test.eq(response.headers:get "X-None", nil)
  test.ok(response.timing.total_s > 0)
  test.eq(response.ip, "127.0.0.1")
end

function M.test_method_headers_and_body_arrive()
  local headers = { ["X-One"] = "1", ["X-Empty"] = "" }
  local response = assert(get("/_echo", { method = "PUT", body = "a\0b", headers = headers }))
  local seen = json.decode(response.body)
  test.eq(seen.method, "PUT")
  test.eq(seen.headers["x-one"], "1")
  test.eq(seen.headers["x-empty"], "")
  test.eq(seen.headers["content-type"], nil)
  test.eq(seen.headers["accept-encoding"], "identity")
  test.eq(seen.body, "a\0b")
  local pairs_form = assert(get("/_echo", { headers = { { "X-Two", "2" }, "X-Three: 3" } }))
  test.eq(json.decode(pairs_form.body).headers["x-two"], "2")
  test.eq(json.decode(pairs_form.body).headers["x-three"], "3")
end

function M.test_headers_cannot_be_smuggled()
  test.fails("badarg", get("/_echo", { headers = { ["X-A"] = "1\r\nX-B: 2" } }))
end

function M.test_misuse_raises_in_the_callers_name()
  test.raises("unknown option 'uri'", http.request, { url = "http://x/", uri = 1 })
  test.raises("'url': string expected", http.request, {})
end

function M.test_network_errors_name_their_phase()
  local refused = test.fails("network", http.request { url = "http://127.0.0.1:1/", proxy = false })
  test.eq(refused.phase, "connect")
  test.contains(refused.msg, "Connection refused")
  local unknown = test.fails("network", http.request { url = "http://no-such-host.invalid/", proxy = false })
  test.eq(unknown.phase, "resolve")
  test.contains(unknown.msg, "no-such-host.invalid")
  test.fails("badarg", http.request { url = "ftp://127.0.0.1/", proxy = false })
  test.fails("badarg", http.request { url = "http://", proxy = false })
end

function M.test_each_deadline_has_its_name()
  local fake = fakellm.script { { first_byte_delay_s = 30, content = "x" }, { delay_s = 30 } }
  local chat = { method = "POST", body = "{}", url = fake.url .. "/chat/completions", proxy = false }
  chat.idle_timeout_s = 0.05
  test.contains(test.fails("timeout", http.request(chat)).msg, "silence deadline")
  chat.first_byte_timeout_s = 0.05
  test.contains(test.fails("timeout", http.request(chat)).msg, "first byte deadline")
  local slow = { timeout_s = 0.05 }
  test.contains(test.fails("timeout", get("/_bytes/1000?chunk=1&delay_s=0.01", slow)).msg, "total deadline")
end

function M.test_a_connect_deadline_is_kept()
  local port = json.decode(assert(get "/_deaf").body).port -- a listener whose backlog is full answers nothing
  local e = test.fails("timeout", http.request {
    url = ("http://127.0.0.1:%d/"):format(port), connect_timeout_s = 0.05, proxy = false,
  })
  test.contains(e.msg, "connect deadline")
end

function M.test_a_body_over_its_cap_is_refused()
  test.fails("toobig", get("/_bytes/100000", { max_body_bytes = 99999 }))
  test.eq(#assert(get("/_bytes/100000", { max_body_bytes = 100000 })).body, 100000)
end

function M.test_redirects()
  local response = assert(get "/_redirect/2")
  test.eq(response.body, "arrived")
  test.contains(response.url, "/_redirect/0")
  test.eq(assert(get("/_redirect/2", { max_redirects = 0 })).status, 302)
  test.fails("protocol", get("/_redirect/9", { max_redirects = 3 }))
end

function M.test_a_cut_response_is_an_error()
  local fake = fakellm.script { { truncate = 5, content = "x" }, { refuse = true }, { reset = true } }
  local chat = { method = "POST", body = "{}", url = fake.url .. "/chat/completions", proxy = false }
  test.contains(test.fails("network", http.request(chat)).msg, "cut off")
  test.fails("network", http.request(chat))
  test.fails("network", http.request(chat))
end

function M.test_a_stream_is_read_piece_by_piece()
  local stream <close> = assert(http.open { url = url "/_bytes/3000000", proxy = false })
  test.eq(stream.status, 200)
  local n, pieces = 0, 0
  while true do
    local bytes, e = stream:read()
    test.eq(e, nil)
    if not bytes then break end
    n, pieces = n + #bytes, pieces + 1
  end
  test.eq(n, 3000000)
  test.ok(pieces > 1)
  test.eq(stream:read(), nil)
end

function M.test_a_stream_that_nobody_reads_is_paused()
  local stream <close> = assert(http.open { url = url "/_bytes/200000000", proxy = false })
  local before = collectgarbage "count"
  for _ = 1, 30 do fakellm.stats() end -- the server sends as much as it may meanwhile
  local first = assert(stream:read())
  test.ok(#first <= 300 * 1024, #first)
  test.ok(collectgarbage "count" - before < 2048)
end

function M.test_a_closed_stream_says_so()
  local stream = assert(http.open { url = url "/_bytes/1000000", proxy = false })
  stream:close()
  stream:close()
  test.raises("closed", stream.read, stream)
end

function M.test_closing_wakes_the_fiber_that_reads()
  local fake = fakellm.script { { first_byte_delay_s = 30, content = "x" } }
  local stream = assert(http.open {
    method = "POST", body = "{}", url = fake.url .. "/chat/completions", proxy = false,
  })
  local reader = fiber.spawn(function()
    local bytes, e = stream:read()
    test.fails("cancelled", bytes, e)
  end)
  async.sleep(0.01)
  stream:close()
  test.ok(reader:join(5))
end

function M.test_cancel_aborts_the_transfer_at_once()
  local fake = fakellm.script { { hang = true } }
  local inflight = fakellm.stats().inflight
  local waiting = fiber.spawn(function()
    return http.request { method = "POST", body = "{}", url = fake.url .. "/chat/completions", proxy = false }
  end)
  repeat async.sleep(0.005) until fakellm.stats().inflight > inflight
  waiting:cancel()
  local ok, e = waiting:join(5)
  test.eq(ok, false)
  test.eq(e.code, "cancelled")
  repeat async.sleep(0.005) until fakellm.stats().inflight == inflight -- the server notices that we left
end

function M.test_the_host_limit_queues()
  local fake = fakellm.script { steps = { { delay_s = 0.02 } } }
  local most, running, timings = 0, 0, {}
  async.scope(function(scope)
    for i = 1, 6 do
      scope:spawn(function()
        running = running + 1
        local response = assert(http.request {
          method = "POST", body = "{}", url = fake.url .. "/chat/completions", proxy = false, host_limit = 2,
        })
        running = running - 1
        timings[i] = response.timing
      end)
    end
  end)
  for _, entry in ipairs(fake.log()) do most = math.max(most, entry.inflight) end
  test.eq(#timings, 6)
  test.ok(most <= 2, most)
  test.ok(timings[6].queue_s > 0)
end

function M.test_headers_can_be_seen_before_the_body()
  local seen
  local function on_headers(head) seen = head.headers:get "content-length" end
  local response = assert(get("/_bytes/500000", { on_headers = on_headers }))
  test.eq(seen, "500000")
  test.eq(#response.body, 500000)
end

function M.test_events_of_a_stream()
  local fake = fakellm.script { "hello world" }
  local stream = assert(http.open {
    method = "POST", url = fake.url .. "/chat/completions", proxy = false,
    body = '{"model":"m","stream":true,"messages":[]}',
  })
  local datas = {}
  for event in http.events(stream) do datas[#datas + 1] = event.data end
  stream:close()
  test.eq(datas[#datas], "[DONE]")
  test.ok(#datas > 3)
end

function M.test_sse_is_for_streams_only()
  local fake = fakellm.script { steps = { "hello", { status = 503 } }, shared = true }
  local opts = {
    method = "POST", url = fake.url .. "/chat/completions", proxy = false,
    body = '{"model":"m","stream":true,"messages":[]}',
  }
  local last
  for event in http.sse(opts) do last = event.data end
  test.eq(last, "[DONE]")
  test.raises("HTTP status 503", http.sse, opts)
  test.raises("Connection refused", http.sse, { url = "http://127.0.0.1:1/", proxy = false })
end

function M.test_compressed_data_is_decoded_though_not_asked_for()
  test.eq(assert(get "/_gzip").body, "compressed")
end

function M.test_the_environments_proxies()
  local function with(env)
    return function(name) return env[name] end
  end
  local proxy = {
    http_proxy = "http://p:1", https_proxy = "http://s:2", no_proxy = "localhost, .corp.example,10.0.0.1:80",
  }
  test.eq(http._proxy_for("http://a.example/x", with(proxy)), "http://p:1")
  test.eq(http._proxy_for("https://u:p@a.example:8443/x", with(proxy)), "http://s:2")
  test.eq(http._proxy_for("http://localhost:8000/v1", with(proxy)), nil)
  test.eq(http._proxy_for("http://db.corp.example", with(proxy)), nil)
  test.eq(http._proxy_for("http://xcorp.example", with(proxy)), "http://p:1")
  test.eq(http._proxy_for("http://10.0.0.1:80/", with(proxy)), nil)
  test.eq(http._proxy_for("http://10.0.0.1:81/", with(proxy)), "http://p:1")
  test.eq(http._proxy_for("http://a/", with { HTTP_PROXY = "http://p:1" }), nil)
  test.eq(http._proxy_for("http://a/", with { all_proxy = "http://p:1", no_proxy = "*" }), nil)
end

function M.test_a_proxy_gets_the_whole_address()
  local address = fakellm.address()
  local response = assert(http.request { url = "http://no-such-host.invalid/_echo", proxy = address })
  test.eq(json.decode(response.body).headers.host, "no-such-host.invalid") -- it was asked; no name was looked up
end

function M.test_a_unix_socket()
  local dir = assert(fs.tmpdir "agentbox-http")
  local server = fakellm.start("--unix " .. dir .. "/s")
  local response = assert(http.request { url = "http://any.name/_echo", unix_socket = server.where, keep_alive = false })
  test.eq(json.decode(response.body).headers.host, "any.name")
  assert(server.stop { url = "http://x/_quit", unix_socket = server.where, keep_alive = false })
  assert(fs.remove(dir, true))
  local gone = test.fails("network", http.request { url = "http://x/", unix_socket = server.where, keep_alive = false })
  test.eq(gone.phase, "connect")
end

-- A certificate for 127.0.0.1 that nobody has signed but itself.
local function certificate(dir)
  local command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout %s/key -out %s/cert -days 2 "
      .. "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost 2>&1"
  local pipe <close> = assert(io.popen(command:format(dir, dir)))
  pipe:read "a"
  if not fs.stat(dir .. "/cert") then test.skip "no openssl program" end
  return dir .. "/cert", dir .. "/key"
end

function M.test_tls_is_verified()
  local dir = assert(fs.tmpdir "agentbox-http")
  local cert, key = certificate(dir)
  local server = fakellm.start(("--tls %s %s"):format(cert, key))
  local function ask(opts)
    local request = { url = ("https://127.0.0.1:%s/_echo"):format(server.where), proxy = false }
    request.keep_alive = false -- nothing is kept of a server that is soon gone
    for name, value in pairs(opts) do request[name] = value end
    return http.request(request)
  end
  local e = test.fails("network", ask {})
  test.eq(e.phase, "tls")
  test.contains(e.msg, "certificate")
  local trusted = assert(ask { ca_file = cert })
  test.eq(trusted.status, 200)
  test.ok(trusted.timing.tls_s > 0)
  test.eq(assert(ask { ca_pem = assert(fs.read(cert)) }).status, 200)
  test.eq(assert(ask { insecure = true }).status, 200)
  local wrong_name = { ca_file = cert, url = ("https://localhost.localdomain:%s/"):format(server.where) }
  test.fails("network", ask(wrong_name))
  local quit = ("https://127.0.0.1:%s/_quit"):format(server.where)
  assert(server.stop { url = quit, ca_file = cert, keep_alive = false })
  assert(fs.remove(dir, true))
end

function M.test_dates()
  test.eq(http.date "Sun, 06 Nov 1994 08:49:37 GMT", 784111777)
  test.eq(http.date "soon", nil)
end

return M

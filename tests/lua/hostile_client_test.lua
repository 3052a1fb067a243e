--- Clients that mean harm, or are broken: each costs the server a connection for a while, and nobody else anything.
local async = require "agentbox.async"
local fs = require "agentbox.fs"
local http = require "agentbox.http"
local rand = require "agentbox.rand"
local runs = dofile((arg[0]:gsub("lua/[^/]*$", "support/runs.lua")))
local server = require "agentbox.http_server"
local test = require "agentbox.test"
local wire = dofile((arg[0]:gsub("lua/[^/]*$", "support/wire.lua")))

local M = {}
local support = arg[0]:gsub("lua/[^/]*$", "support")

local handled

local function serve(opts)
  handled = 0
  local all = { listen = "127.0.0.1:0", handler = function(req)
    handled = handled + 1
    return #req:body() .. " " .. req.path
  end }
  for key, value in pairs(opts or {}) do all[key] = value end
  return assert(server.serve(all))
end

local function well(at)
  local response = assert(http.request { url = at.url .. "/well", proxy = false, keep_alive = false, timeout_s = 30 })
  test.eq(response.body, "0 /well")
end

local GET = "GET /a HTTP/1.1\r\nHost: localhost\r\n"
local POST = "POST /a HTTP/1.1\r\nHost: localhost\r\n"
local SECOND = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"

-- What two programs could cut at different places: one answer, a refusal, and the end.
function M.test_no_form_of_smuggling_gets_a_second_request_in()
  local at <close> = serve()
  local forms = {
    POST .. "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST .. "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    POST .. "Content-Length: 0\r\nContent-Length: 45\r\n\r\n",
    POST .. "Content-Length: 0, 45\r\n\r\n",
    POST .. "Content-Length: +0\r\n\r\n",
    POST .. "Content-Length : 45\r\n\r\n",
    POST .. "Transfer-Encoding: xchunked\r\n\r\n",
    POST .. "Transfer-Encoding: chunked, identity\r\n\r\n",
    POST .. "Transfer-Encoding: identity, chunked\r\n\r\n",
    POST .. "Transfer-Encoding:\tchunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    POST .. "Transfer-Encoding:\n chunked\r\n\r\n0\r\n\r\n",
    POST .. " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST .. "X: y\r\n Content-Length: 45\r\n\r\n",
    POST .. "X: y\rContent-Length: 45\r\n\r\n",
    POST .. "X: y\nContent-Length: 45\r\n\r\n",
    POST .. "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 45\r\n\r\n",
    POST .. "Transfer-Encoding: chunked\r\n\r\n1\r\nZ0\r\n\r\n",
    POST .. "Transfer-Encoding: chunked\r\n\r\n1;\n\r\nZ\r\n0\r\n\r\n",
    POST .. "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF1\r\nZ",
    "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /a HTTP/1.1\r\n\r\n", GET .. "Host: other\r\n\r\n", "GET /a\r\n\r\n", "GET /a\nHost: localhost\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: localhost\r\n\n", "GET /a\0b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "\22\3\1\2\0\1\0\1\252\3\3", "\0\0\0\0",
  }
  for _, form in ipairs(forms) do
    local c <close> = wire.connect(at)
    c:send(form .. SECOND)
    local answer = c:response()
    test.ok(answer and answer.status >= 400, form)
    test.eq(answer.fields.connection, "close", form)
    test.eq(c:rest(), "", form)
  end
  test.eq(handled, 0)
  test.eq(at:stats().refused, #forms)
  well(at)
end

-- One byte now and then, and never the end: each has as long as one head may take.
function M.test_slow_heads_and_half_bodies_are_given_up()
  local at <close> = serve { head_timeout_s = 0.2, body_timeout_s = 0.2, idle_timeout_s = 0.2 }
  local kinds = { "", "GET /", GET, GET .. "X: y", POST .. "Content-Length: 100\r\n\r\nhalf",
    POST .. "Transfer-Encoding: chunked\r\n\r\n64\r\nhalf", POST .. "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n" }
  local ended = 0
  async.scope(function(scope)
    for i = 1, 70 do
      scope:spawn(function()
        local kind = kinds[i % #kinds + 1]
        local c <close> = wire.connect(at)
        c:send(kind)
        if kind:find "X: y$" then
          while c:send "y" do async.sleep(0.02) end
        end
        local answer = c:response()
        if kind ~= "" and not kind:find "X: y$" then test.eq(answer and answer.status, 408, kind) end
        c:rest()
        ended = ended + 1
      end)
    end
    for _ = 1, 20 do well(at) end
  end)
  test.eq({ ended, at:stats().held_bytes }, { 70, 0 })
  wire.wait(function() return at:stats().connections == 0 end)
end

function M.test_who_leaves_in_the_middle_leaves_nothing()
  local at <close> = serve()
  local whole = POST .. "Content-Length: 400000\r\n\r\n" .. ("x"):rep(400000)
  local random = rand.new(7)
  for _ = 1, 150 do
    local c <close> = wire.connect(at)
    c:send(whole:sub(1, random:int(1, random:int(1, #whole))))
  end
  wire.wait(function() return at:stats().connections == 0 end)
  test.eq(at:stats().held_bytes, 0)
  well(at)
end

function M.test_noise_is_refused_and_harms_nobody()
  local at <close> = serve { head_timeout_s = 0.5 }
  local random = rand.new(11)
  local parts = { GET, POST, "\r\n", "\r\n\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", "3\r\nabc\r\n", "\n",
    " ", ":", "HTTP/1.1", "\0", "GET ", "/", "%zz", "Expect: 100-continue\r\n", "Connection: close\r\n", "Upgrade: h2c\r\n", "\255" }
  for _ = 1, 300 do
    local c <close> = wire.connect(at)
    local text = {}
    for i = 1, random:int(1, 12) do text[i] = parts[random:int(1, #parts)] end
    c:send(table.concat(text))
  end
  wire.wait(function() return at:stats().connections == 0 end)
  well(at)
end

-- In another process, whose descriptors they are.
function M.test_ten_thousand_that_say_half_a_word_keep_nobody_out()
  local at <close> = serve { connections = 4000, head_timeout_s = 1 }
  local said = os.tmpname()
  local crowd <close> = assert(io.popen(("python3 %s/crowd.py %s 10000 >%s"):format(support, at.url:match "%d+$", said), "w"))
  local gone <close> = setmetatable({}, { __close = function() os.remove(said) end }) -- luacheck: ignore
  wire.wait(function() return (fs.read(said) or ""):find "\n" ~= nil end)
  local answer = fs.read(said)
  if answer == "limit\n" then test.skip "fewer than 10,064 descriptors may be had here" end
  test.eq(answer, "10000\n")
  for _ = 1, 20 do well(at) end
  test.ok(at:stats().connections <= 4000)
  crowd:close()
  wire.wait(function() return at:stats().connections == 0 end)
  test.eq(handled, 20)
end

function M.test_many_connections_wait_their_turn()
  local at <close> = serve { connections = 100, idle_timeout_s = 600 }
  local open = {}
  local _ <close> = setmetatable({}, { __close = function() for _, c in ipairs(open) do c:close() end end })
  for i = 1, 300 do open[i] = wire.connect(at) end -- the oldest that say nothing make room
  well(at)
  test.ok(at:stats().connections <= 100)
  for i = 201, 300 do test.ok(open[i]:send(GET), "the newest are there") end
  well(at) -- it waits for one of them to be given up, or is let in where one was idle
end

function M.test_a_process_with_few_descriptors_keeps_answering()
  local binary = assert(require "agentbox.fs".realpath "/proc/self/exe")
  local script = ([[
    local ab = require "agentbox"
    local at = assert(ab.http.serve { listen = "127.0.0.1:0", handler = function() return "ok" end, idle_timeout_s = 600 })
    print(at.url) io.stdout:flush() require "agentbox.sys.os".read_stdin(1)
  ]]):gsub("\n", " ")
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(script)
  file:close()
  local hold = os.tmpname()
  os.remove(hold)
  assert(os.execute("mkfifo " .. hold))
  local pipe = assert(io.popen(("ulimit -n 128; '%s' script '%s' <'%s'"):format(binary, path, hold)))
  local holder = assert(io.open(hold, "w"))
  local at = { url = pipe:read "l" }
  local open = {}
  for i = 1, 400 do open[i] = wire.connect(at) end
  local response = assert(http.request { url = at.url .. "/", proxy = false, keep_alive = false, timeout_s = 30 })
  test.eq(response.body, "ok")
  for _, c in ipairs(open) do c:close() end
  holder:close()
  pipe:close()
  os.remove(path)
  os.remove(hold)
end

function M.test_ten_thousand_pipelined_requests_are_answered_in_order()
  local at <close> = serve { timeout_s = 300 }
  local c <close> = wire.connect(at)
  local n, list = 10000, {}
  for i = 1, n do list[i] = ("GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n"):format(i) end
  async.scope(function(scope)
    scope:spawn(function() c:send(table.concat(list)) end)
    for i = 1, n do
      local answer = c:response()
      if not answer or answer.body ~= "0 /" .. i then test.eq(answer and answer.body, "0 /" .. i) end
    end
  end)
end

function M.test_a_reader_that_takes_nothing_is_cut_off()
  local left
  local at <close> = serve { stall_timeout_s = 0.3, handler = function(req)
    local guard <close> = setmetatable({ req:stream() }, { __close = function() left = true end })
    while guard[1]:write(("x"):rep(65536)) do end -- luacheck: ignore 542
  end }
  local c <close> = wire.connect(at)
  c:send(GET .. "\r\n")
  wire.wait(function() return left end)
  wire.wait(function() return at:stats().connections == 0 end)
end

-- All of it at once, beside a run whose numbers it asks for: the run loses nothing.
function M.test_a_run_beside_hostile_clients_loses_nothing()
  local run <close> = runs.start { tasks = runs.tasks(20), n = 2, concurrency = 4, metrics = "127.0.0.1:0" }
  local at = run.metrics_server
  async.scope(function(scope)
    scope:spawn(function()
      local random = rand.new(3)
      while run.state ~= "over" do
        local ok, c = pcall(wire.connect, at)
        if ok then
          c:send((GET .. "Content-Length: 9\r\n\r\n" .. SECOND):sub(1, random:int(1, 90)))
          c:close()
        end
        async.sleep(0)
      end
    end)
    run:wait()
  end)
  local sum = run:wait()
  test.eq({ sum.rollouts, sum.solved, sum.attempts }, { 40, 40, 40 })
end

return M

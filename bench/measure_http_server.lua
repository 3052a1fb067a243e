--- The HTTP server beside libmicrohttpd and nginx: the same bytes from each to wrk, on the same cores; and what open
--- streams of events cost in memory. Needs wrk and python3; peers are libmicrohttpd (libmicrohttpd-dev) and nginx. What is
--- not installed has no row.
local fs = require "agentbox.sys.fs"
local report = require "report"

local binary = assert(fs.realpath "/proc/self/exe")
local CONNECTIONS, SECONDS, STREAMS = 64, 2, 8000

local function here() return debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "bench" end

local function there(program) return os.execute(("command -v %s >/dev/null 2>&1"):format(program)) == true end

local function field_of(pid, file, pattern)
  local handle <close> = assert(io.open(("/proc/%s/%s"):format(pid, file)))
  return handle:read("a"):match(pattern)
end

-- User and system seconds of a process.
local function cpu_of(pid)
  local fields = {}
  for field in field_of(pid, "stat", "%) (.*)$"):gmatch "%S+" do fields[#fields + 1] = field end
  return (tonumber(fields[12]) + tonumber(fields[13])) / 100
end

-- A server in the background, which ends with its stdin: a FIFO that is open for as long as `hold` is.
local function launch(dir, name, command)
  local fifo, out = ("%s/%s.in"):format(dir, name), ("%s/%s.out"):format(dir, name)
  assert(os.execute(("mkfifo %s && { %s <%s >%s 2>/dev/null & }"):format(fifo, command, fifo, out)))
  local hold = assert(io.open(fifo, "w"))
  local url, pid
  repeat
    os.execute "sleep 0.05"
    local file <close> = assert(io.open(out))
    url, pid = (file:read "a"):match "(%S+)%s+(%d+)\n"
  until url
  return { name = name, url = url, pid = pid, hold = hold, us = {} }
end

local NGINX = [[daemon off; master_process off; pid %s/pid; error_log /dev/null; events { worker_connections 4096; }
http { access_log off; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f; uwsgi_temp_path %s/u;
scgi_temp_path %s/s; keepalive_requests 1000000000; server { listen unix:%s/unused; listen 127.0.0.1:%d;
location / { default_type text/plain; return 200 "%s"; } } }]]

-- Its process is the shell's child; it ends when the shell that reads our FIFO does.
local function nginx_command(dir)
  local port = 20000 + math.random(20000)
  local file <close> = assert(io.open(dir .. "/nginx.conf", "w"))
  file:write(NGINX:format(dir, dir, dir, dir, dir, dir, dir, port, ("agentbox "):rep(16)))
  return ("sh -c 'nginx -c %s/nginx.conf & echo http://127.0.0.1:%d $!; cat >/dev/null; kill $!'"):format(dir, port)
end

-- Microseconds of the server for a request.
local function round(one)
  local before = cpu_of(one.pid)
  local wrk <close> = assert(io.popen(("wrk -t1 -c%d -d%d %s/hello"):format(CONNECTIONS, SECONDS, one.url)))
  local requests = tonumber(wrk:read("a"):match "(%d+) requests in")
  one.us[#one.us + 1] = (cpu_of(one.pid) - before) / requests * 1e6
end

local function rates(dir, rounds)
  local script = ("%s script %s/http_server.lua"):format(binary, here())
  local all, mhd = { launch(dir, "ours", script) }, here() .. "/../build/release/bench/bench-mhd"
  if fs.stat(mhd) then all[#all + 1] = launch(dir, "libmicrohttpd", mhd) end
  if there "nginx" then all[#all + 1] = launch(dir, "nginx", nginx_command(dir)) end
  for _ = 1, rounds do
    for _, one in ipairs(all) do round(one) end
  end
  local ours = report.quantile(all[1].us, 0.5)
  for i = 2, #all do
    local theirs = report.quantile(all[i].us, 0.5)
    report.row {
      what = ("HTTP requests for a second of CPU, %d connections, beside %s"):format(CONNECTIONS, all[i].name),
      ours = ("%.1f us each"):format(ours), peer = ("%.1f us each"):format(theirs), value = theirs / ours, unit = "x",
      must = all[i].name == "nginx" and 0.5 or 1, better = "more",
    }
  end
  for _, one in ipairs(all) do one.hold:close() end
end

local function streams(dir)
  local one = launch(dir, "streams", ("%s script %s/http_server.lua"):format(binary, here()))
  local before = tonumber(field_of(one.pid, "status", "VmRSS:%s*(%d+)"))
  local port, clients = one.url:match ":(%d+)$", "python3 %s/open_streams.py 127.0.0.1 %s /events %d <%s/clients"
  assert(os.execute(("mkfifo %s/clients"):format(dir)))
  local pipe <close> = assert(io.popen(clients:format(here(), port, STREAMS, dir)))
  local hold <close> = assert(io.open(dir .. "/clients", "w"))
  assert(pipe:read "l" == "open")
  local grown = (tonumber(field_of(one.pid, "status", "VmRSS:%s*(%d+)")) - before) / 1024
  report.row {
    what = ("memory for %d open streams of events"):format(STREAMS), ours = ("%.1f MB"):format(grown), value = grown,
    unit = "MB", must = 10, better = "less",
  }
  one.hold:close()
  hold:close()
end

return function(rounds)
  local dir = assert(fs.tmpdir "agentbox-bench-http")
  local _ <close> = setmetatable({}, { __close = function() fs.remove(dir, true) end })
  if there "wrk" then rates(dir, rounds) end
  if there "python3" then streams(dir) end
end

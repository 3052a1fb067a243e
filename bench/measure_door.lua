--- The trainer's door: what a group of 16 costs the engine, as facts alone and with rows of token ids.
local ab = require "agentbox"
local fs = require "agentbox.sys.fs"
local report = require "report"

local binary = assert(fs.realpath "/proc/self/exe")
local MEGABYTES, TURNS, A_MINUTE = 30, 3, 1000

local function here() return debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "bench" end

-- User and system time of a process, in seconds.
local function cpu_of(pid)
  local file <close> = assert(io.open(("/proc/%d/stat"):format(pid)))
  local fields, n = {}, 0
  for field in file:read("a"):match "%) (.*)$":gmatch "%S+" do n = n + 1 fields[n] = field end
  return (tonumber(fields[12]) + tonumber(fields[13])) / 100
end

-- Milliseconds of the engine for a group, over all groups of the run.
local function cost(dir, formats)
  os.remove(dir .. "/r/cursor.json")
  local pipe <close> = assert(io.popen(("%s script %s/door_server.lua %s r 2>/dev/null"):format(binary, here(), dir)))
  local url, pid = assert(pipe:read "l"):match "^(%S+)%s+(%d+)$"
  local function ask(method, path, doc, session)
    local response = assert(ab.http.request {
      url = url .. path, method = method, body = doc and ab.json.encode(doc) or nil, proxy = false,
      headers = session and { ["Agentbox-Session"] = session } or nil,
    })
    assert(response.status == 200, response.body)
    return response.body
  end
  local session = ab.json.decode(ask("POST", "/v1/connect", {})).session
  local before, groups, bytes, at, last = cpu_of(pid), 0, 0, 0, nil
  repeat -- the last one is acknowledged when the time is known: the engine ends with it
    local body = ask("GET", ("/v1/groups?wait=0&after=%d&formats=%s"):format(at, formats), nil, session)
    local seq = tonumber(body:match '"groups":%[{"seq":(%d+)')
    if last and seq then ask("POST", "/v1/ack", { seq = { last } }, session) end
    if seq then groups, bytes, at, last = groups + 1, bytes + #body, seq, seq end
  until not seq
  local ms = (cpu_of(pid) - before) / groups * 1000
  ask("POST", "/v1/ack", { seq = { last } }, session)
  return ms, bytes / groups
end

local function made_run(what)
  local dir = assert(fs.tmpdir "agentbox-bench-door")
  local make = "%s script %s/make_run.lua %s r %d %d 1 %s 16 >/dev/null"
  assert(os.execute(make:format(binary, here(), dir, MEGABYTES, TURNS, what)))
  return setmetatable({ path = dir }, { __close = function() fs.remove(dir, true) end })
end

return function(rounds)
  local chat <close> = made_run "chat"
  local ids <close> = made_run "ids"
  local kinds = { { chat, "", "facts alone" }, { chat, "art", "chats as ART's" }, { ids, "verl", "token ids as verl's rows" } }
  for _, kind in ipairs(kinds) do
    local times, size = {}, nil
    for i = 1, rounds do times[i], size = cost(kind[1].path, kind[2]) end
    local ms = report.quantile(times, 0.5)
    report.row {
      what = ("a group of 16 through the door, %s (%d KB); at %d a minute"):format(kind[3], size // 1000, A_MINUTE),
      ours = ("%.2f ms"):format(ms), value = ms * A_MINUTE / 60000 * 100, unit = "% of a core", must = 10, better = "less",
    }
  end
end

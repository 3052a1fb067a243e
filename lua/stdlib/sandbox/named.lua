--- sandbox/named.lua: sandboxes that a person keeps in one program and uses from others, by name.
---
--- The program that made a sandbox has it, and nobody else: it listens on a socket in a folder of the user's own, and what others
--- ask for is done by it. When it ends, however, the sandbox ends with it. There is no daemon.
local err = require "agentbox.err"
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local http = require "agentbox.http"
local http_server = require "agentbox.http_server"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local time = require "agentbox.sys.time"

local M = {}

--- Pieces of a command's output: the first two are numbers of descriptors.
M.KIND = { stdout = 1, stderr = 2, over = 3 }

local HEAD = "<BI4" -- kind and length of a piece of output
local END_S, ANSWER_S = 30, 5

-- Ours alone; in a folder where others may write, somebody else's is not used.
local function folder()
  local base = os_.env "XDG_RUNTIME_DIR"
  local dir = base and base ~= "" and base .. "/agentbox-sandboxes" or ("/tmp/agentbox-sandboxes-%d"):format(os_.uid())
  fs.mkdir(dir)
  local stat = fs.lstat(dir)
  if not stat or stat.type ~= "dir" or stat.uid ~= os_.uid() or stat.mode & 2 ~= 0 then
    return nil, err.new("config", dir .. " is not a folder of this user's alone", { hint = "set XDG_RUNTIME_DIR" })
  end
  return dir
end

---Whether a text can be the name of one.
---@param name string
---@return boolean
function M.is_name(name) return #name <= 40 and name:find "^[%w_][%w_.-]*$" ~= nil end

local function socket_of(name)
  if not M.is_name(name) then
    return nil, err.new("badarg", "a name has letters, digits, and . _ - after the first, 40 at most: " .. name)
  end
  local dir, problem = folder()
  return dir and dir .. "/" .. name .. ".sock", problem
end

-- ---------------------------------------------------------------- the one who has it

local function piece(kind, bytes) return HEAD:pack(kind, #bytes) .. bytes end

local function ending(outcome, problem)
  local doc = json.object {}
  if not outcome then
    doc.code, doc.msg = problem.code, problem.msg
  else
    doc.exit_code, doc.timed_out, doc.oom, doc.signal = outcome.exit_code, outcome.timed_out, outcome.oom, outcome.signal
  end
  return piece(M.KIND.over, json.encode(doc))
end

-- A body is the length of a JSON text, the text, and the bytes of stdin.
local function exec(sb, req)
  local body = req:body()
  if #body < 4 then return http_server.problem(400, "badarg", "no command") end
  local ok, text, at = pcall(string.unpack, "<s4", body)
  local asked = ok and json.decode(text)
  if not json.is_object(asked) then return http_server.problem(400, "badarg", "no command") end
  local stream = req:stream()
  local outcome, problem = sb:exec(asked.command, {
    timeout_s = asked.timeout_s, user = asked.user, cwd = asked.cwd, stdin = body:sub(at),
    on_output = function(bytes, which) stream:write(piece(M.KIND[which], bytes)) end,
  })
  stream:write(ending(outcome, problem))
end

local function diff(sb)
  if not sb.diff then return nil, err.new("unsupported", ("backend %s cannot tell what changed"):format(sb.kind)) end
  local list, problem = sb:diff()
  if not list then return nil, problem end
  local lines = {}
  for i, one in ipairs(list) do lines[i] = ("%s %s\0"):format(one.kind, one.path) end
  return { body = table.concat(lines), type = "application/octet-stream" }
end

---Lets others use a sandbox by that name until the handle is closed. `on_end` is called when somebody wants its end.
---@async
---@param sb agentbox.Sandbox
---@param name string
---@param on_end fun()
---@return { close: fun() }?
---@return agentbox.Err? err    # badarg; busy when one of that name is there
function M.serve(sb, name, on_end)
  local path, problem = socket_of(name)
  if not path then return nil, problem end
  local other = M.ask(name, "GET", "/sandbox")
  if other then return nil, err.new("busy", ("a sandbox named %s is there, process %d has it"):format(name, other.pid)) end
  local about = json.object {}
  about.name, about.pid, about.backend, about.image, about.id = name, os_.pid(), sb.kind, sb.image, sb.id
  about.workspace, about.started = sb.workspace, time.now()
  local server
  server, problem = http_server.serve { listen = "unix:" .. path, token = false, routes = {
    ["GET /sandbox"] = function()
      local usage = sb:usage()
      about.memory_bytes, about.pids = usage and usage.memory_bytes, usage and usage.pids
      return { json = about }
    end,
    ["POST /exec"] = function(req) return exec(sb, req) end,
    ["GET /diff"] = function() return diff(sb) end,
    ["POST /end"] = function()
      fiber.spawn(on_end)
      return { status = 202, body = "" }
    end,
  } }
  if not server then return nil, problem end
  local handle = {}
  function handle.close()
    server:close()
    fs.remove(path)
  end
  return setmetatable(handle, { __close = handle.close })
end

-- ---------------------------------------------------------------- everybody else

local function absent(name)
  return err.new("notfound", ("no sandbox named %s"):format(name), { hint = "agentbox sandbox ps" })
end

---One question to the owner of a sandbox: the answer decoded, or its bytes where it is no JSON.
---@async
---@param name string
---@param method string
---@param path string
---@return any answer
---@return agentbox.Err? err       # notfound when nobody has it
function M.ask(name, method, path)
  local socket, problem = socket_of(name)
  if not socket then return nil, problem end
  if not fs.lstat(socket) then return nil, absent(name) end
  local response
  response, problem = http.request { url = "http://localhost" .. path, method = method, unix_socket = socket, keep_alive = false,
    timeout_s = path == "/diff" and 300 or ANSWER_S, max_body_bytes = 256 << 20 }
  if not response then
    if problem.code == "timeout" or problem.code == "cancelled" then return nil, problem end
    return nil, absent(name)
  end
  local told = json.decode(response.body)
  if response.status >= 300 then
    local inner = json.is_object(told) and (json.is_object(told.error) and told.error or told) or {}
    return nil, err.new(inner.code or "sandbox", inner.msg or inner.message or response.body:sub(1, 200))
  end
  return told == nil and response.body or told
end

---Runs a command in it; its output comes as it is made.
---@async
---@param name string
---@param asked { command: string|string[], timeout_s?: number, user?: string, cwd?: string, stdin?: string }
---@param on_output fun(bytes: string, kind: integer)
---@return table? ending          # exit_code, timed_out, oom, signal
---@return agentbox.Err? err
function M.exec(name, asked, on_output)
  local socket, problem = socket_of(name)
  if not socket then return nil, problem end
  if not fs.lstat(socket) then return nil, absent(name) end
  local doc, stdin = json.object {}, asked.stdin or ""
  doc.command, doc.timeout_s, doc.user, doc.cwd = asked.command, asked.timeout_s, asked.user, asked.cwd
  local stream
  stream, problem = http.open { url = "http://localhost/exec", method = "POST", unix_socket = socket, keep_alive = false,
    body = ("<s4"):pack(json.encode(doc)) .. stdin, timeout_s = 365 * 86400, idle_timeout_s = 365 * 86400 }
  if not stream then return nil, problem.code == "cancelled" and problem or absent(name) end
  local _ <close> = stream
  local held, size = "", HEAD:packsize()
  while true do
    local bytes
    bytes, problem = stream:read()
    if not bytes then break end
    held = held .. bytes
    while #held >= size do
      local kind, length = HEAD:unpack(held)
      if #held < size + length then break end
      local body = held:sub(size + 1, size + length)
      held = held:sub(size + length + 1)
      if kind == M.KIND.over then
        local told = json.decode(body)
        if told.code then return nil, err.new(told.code, told.msg) end
        return told
      end
      on_output(body, kind)
    end
  end
  return nil, err.new("sandbox", ("the sandbox %s ended: %s"):format(name, problem and problem.msg or "its owner is gone"))
end

---Those that are there, by name. What an owner left that was killed is removed.
---@async
---@return table[]
function M.list()
  local dir, problem = folder()
  if not dir then return nil, problem end
  local all = {}
  for _, entry in ipairs(fs.list(dir) or {}) do
    local name = entry.name:match "^(.*)%.sock$"
    local about, why = nil, nil
    if name and M.is_name(name) then about, why = M.ask(name, "GET", "/sandbox") end
    if json.is_object(about) then all[#all + 1] = about
    elseif why and why.code == "notfound" then fs.remove(dir .. "/" .. entry.name) end
  end
  return all
end

---Ends one and waits until its owner has let it go.
---@async
---@param name string
---@return true? ok
---@return agentbox.Err? err
function M.finish(name)
  local told, problem = M.ask(name, "POST", "/end")
  if told == nil then return nil, problem end
  local socket, deadline = socket_of(name), time.monotonic() + END_S
  while fs.lstat(socket) do
    if time.monotonic() > deadline then return nil, err.new("timeout", ("%s is not gone after %d s"):format(name, END_S)) end
    fiber.sleep(0.02)
  end
  return true
end

return M

--- The pages of a run, served while it goes on: the same as `ab.render` writes, with rows as they come and bodies when
--- they are opened.
---
---     local view <close> = assert(ab.view.open { path = "runs/a/7d31..." })
---     print(view.url)
---     view:wait()
---
--- Only files are read, so that a run does not notice. Beyond the loopback a token is needed.
local async = require "agentbox.async"
local bench = require "agentbox.render.bench"
local body = require "agentbox.render.body"
local cut = require "agentbox.render.cut"
local document = require "agentbox.render.document"
local err = require "agentbox.err"
local feed = require "agentbox.render.feed"
local fiber = require "agentbox.sys.fiber"
local figures = require "agentbox.render.figures"
local http_server = require "agentbox.http_server"
local json = require "agentbox.json"
local log = require "agentbox.log"
local schema = require "agentbox.schema"
local source = require "agentbox.render.source"
local time = require "agentbox.sys.time"

local M = {}

local FOLLOW_S, FIGURES_S, PATIENCE = 0.5, 5, 10
local MAX_WIRE = 4 << 20

---@class agentbox.ViewOpts
---@field path string                          # a run's folder, or whatever `ab.render.file` takes
---@field listen? string|integer               # default "127.0.0.1:0": a free port
---@field token? string|agentbox.Secret        # what browsers must show; needed beyond the loopback
---@field title? string
---@field state? async fun(): table?           # how the run is: `state`, `total`, `rollouts`
local OPTIONS = {
  path = { "string", required = true }, listen = { "string|integer", default = "127.0.0.1:0" }, token = { "any" },
  title = { "string" }, state = { "function" },
}

---@class agentbox.View
---@field url string
---@field address string
local View = {}
View.__index = View

local SAFE = {
  ["X-Content-Type-Options"] = "nosniff", ["Referrer-Policy"] = "no-referrer", ["Cache-Control"] = "no-store",
  ["Cross-Origin-Resource-Policy"] = "same-origin",
}

local function page_of(self)
  local page = {
    schema = "agentbox.page/1", live = true, title = self._title, source = self._path, made = time.now(),
    engine = require "agentbox.sys.os".version, bench = bench.of(self._path),
  }
  local head, foot = document.frame { title = self._title, page = page, served = true }
  local headers = { ["Content-Security-Policy"] = document.policy(true) .. "; frame-ancestors 'none'" }
  for name, value in pairs(SAFE) do headers[name] = value end
  return { body = head .. foot, type = "text/html; charset=utf-8", headers = headers }
end

local function answer(text) return { body = text, type = "application/json", headers = SAFE } end

local function whole_number(req, name)
  return math.tointeger(tonumber(req:query()[name]))
end

-- Figures take a moment with many rows: one for all viewers, anew every few seconds at most.
local function figures_of(self)
  local known = self._figures
  if known and (known.n == self._feed.n or time.monotonic() - known.at < FIGURES_S) then return answer(known.text) end
  local n = self._feed.n
  local text = json.encode(figures.of(self._feed:facts()))
  self._figures = { n = n, at = time.monotonic(), text = text }
  return answer(text)
end

local function trajectory_of(self, req)
  local place = self._feed:place(whole_number(req, "row"))
  if not place then return nil, err.new("notfound", "no such row") end
  return source.trajectory { place = place }
end

local function body_of(self, req)
  local t, problem = trajectory_of(self, req)
  if not t then return nil, problem end
  return answer(json.encode(body.of(t, body.SERVED)))
end

local function wire_of(self, req)
  local t, problem = trajectory_of(self, req)
  if not t then return nil, problem end
  local index, out = whole_number(req, "call"), json.object {}
  local call
  for _, one in ipairs(t.line.calls) do
    if one.i == index then call = one end
  end
  if not call then return nil, err.new("notfound", "no such call") end
  for _, which in ipairs { "request", "response" } do
    local bytes, lost = t:body(call, which)
    local has = cut.value(call[which]) ~= nil
    if bytes then out[which] = { bytes = #bytes, body = cut.text(bytes, MAX_WIRE) }
    elseif has then out[which] = { bytes = 0, lost = lost.msg } end
  end
  return answer(json.encode(out))
end

local function state_of(self)
  local state = self._state and self._state() or {}
  return {
    n = self._feed.n, damaged = self._feed.damaged, state = state.state, total = state.total, reading = self._reading,
  }
end

local function routes_of(self)
  return {
    ["GET /"] = function() return page_of(self) end,
    ["GET /api/rows"] = function(req)
      local from = whole_number(req, "from") or 0
      if from < 0 then return nil, err.new("badarg", "from must not be negative") end
      return answer(self._feed:since(from))
    end,
    ["GET /api/figures"] = function() return figures_of(self) end,
    ["GET /api/body"] = function(req) return body_of(self, req) end,
    ["GET /api/wire"] = function(req) return wire_of(self, req) end,
    ["GET /api/state"] = function() return answer(json.encode(state_of(self))) end,
    ["GET /api/events"] = function(req) self._hub:add(req, { { event = "state", data = state_of(self) } }) end,
  }
end

-- Reads what is new, and tells the viewers. Where looking takes long, as in a folder of ten thousand documents, it is done
-- less often.
local function follow(self)
  local told, complaint
  while true do
    local n, began = self._feed.n, time.monotonic()
    local ok, problem = self._feed:read(function() self._hub:send { event = "state", data = state_of(self) } end)
    if not ok and problem.code ~= "notfound" and problem.msg ~= complaint then
      complaint = problem.msg
      log.warn("view: %s", complaint)
    end
    self._reading = false
    local state = json.encode(state_of(self))
    if n ~= self._feed.n or state ~= told then
      self._hub:send { event = "state", data = state }
      told = state
    end
    async.sleep(math.max(FOLLOW_S, PATIENCE * (time.monotonic() - began)))
  end
end

--- Serves the pages of a path.
---
--- Returns nil, err if there is nothing (`notfound`), or the address cannot be had.
---@async
---@nodiscard
---@param opts agentbox.ViewOpts
---@return agentbox.View?
---@return agentbox.Err? err
function M.open(opts)
  opts = schema.options(opts, OPTIONS, "view.open")
  local found, problem = feed.open(opts.path)
  if not found then return nil, problem end
  local self = setmetatable({
    _path = opts.path, _title = opts.title or opts.path:match "([^/]+)/*$" or opts.path, _feed = found,
    _state = opts.state, _reading = true, _hub = http_server.hub(),
  }, View)
  self._server, problem = http_server.serve {
    listen = opts.listen, token = opts.token, cookie = "agentbox_view", routes = routes_of(self), body_bytes = 1024,
    connections = 256,
  }
  if not self._server then return nil, problem end
  self.url, self.address = self._server.url, self._server.address
  self._follower = fiber.spawn(follow, self)
  return self
end

--- How many viewers follow, and how many trajectories there are.
---@return { viewers: integer, trajectories: integer, damaged: integer }
function View:stats()
  return { viewers = self._hub.count, trajectories = self._feed.n, damaged = self._feed.damaged }
end

--- Waits until it is closed.
---@async
function View:wait()
  while self._server do async.sleep(FOLLOW_S) end
end

--- Ends it. May be called twice.
function View:close()
  if self._follower then self._follower:cancel() end
  if self._server then
    self._hub:close()
    self._server:close()
  end
  self._server, self._follower = nil, nil
end

View.__close = View.close

return M

--- A model behind an OpenAI-compatible chat completions server.
---
---     complete ─► retry.run ─► one try: request or stream ─► reply.response
---                    ▲  │ 429, 5xx, cut off: wait, next endpoint
---                    └──┘ 4xx: the error at once; context overflow has its own code
---
--- One handle serves any number of rollouts. What it keeps between calls: counters, what is known of each server
--- (models/places.lua), and the cookies of each session.
local err = require "agentbox.err"
local failure = require "agentbox.models.failure"
local http = require "agentbox.http"
local json = require "agentbox.json"
local log = require "agentbox.log"
local orphan = require "agentbox.models.orphan"
local places = require "agentbox.models.places"
local recent = require "agentbox.recent"
local reply = require "agentbox.models.reply"
local retry = require "agentbox.models.retry"
local secret = require "agentbox.secret"
local stream = require "agentbox.models.stream"
local time = require "agentbox.time"
local wire = require "agentbox.models.wire"

local M = {}

local MAX_COOKIES = 4096
local EMFILE = 24

---@class agentbox.OpenAiModel: agentbox.Model
local Model = {}
Model.__index = Model
Model.keeps_time = true -- request.timeout_s needs no second clock
Model.dispatches = true -- request.dispatch is called right before each try
Model.__name = "agentbox.Model"

-- ---------------------------------------------------------------- endpoints and sessions

local function address(base_url)
  local url = base_url:gsub("/+$", "")
  if not url:find "/chat/completions$" then url = url .. "/chat/completions" end
  return url
end

local function remember_cookies(self, session, headers)
  local pairs_of = {}
  for _, value in ipairs(headers:all "Set-Cookie") do pairs_of[#pairs_of + 1] = value:match "^[^;]+" end
  if not session or #pairs_of == 0 then return end
  if not self._cookies[session] then
    if self._cookie_count >= MAX_COOKIES then self._cookies, self._cookie_count = {}, 0 end
    self._cookie_count = self._cookie_count + 1
  end
  self._cookies[session] = table.concat(pairs_of, "; ")
end

local function headers_for(self, session)
  local headers = { { "Content-Type", "application/json" }, { "Authorization", "Bearer " .. secret.reveal(self._key) } }
  if session then
    headers[#headers + 1] = { "X-Session-Id", session }
    if self._cookies[session] then headers[#headers + 1] = { "Cookie", self._cookies[session] } end
  end
  for _, header in ipairs(self._headers) do headers[#headers + 1] = header end
  return headers
end

-- ---------------------------------------------------------------- one try

-- The text of a successful reply, or nil, err, again, after.
local function read_whole(self, session, response, e)
  if not response then return nil, e, failure.transport_again(e) end
  remember_cookies(self, session, response.headers)
  if response.status == 200 then return response.body, response end
  local after = retry.after(response.headers:get "Retry-After", time.now(), http.date)
  local bad, again = failure.of_status(response.status, response.body, after)
  return nil, bad, again, after
end

local function read_rest(response)
  local parts = {}
  while true do
    local bytes, e = response:read()
    if e then return nil, e, failure.transport_again(e) end
    if not bytes then return table.concat(parts) end
    parts[#parts + 1] = bytes
  end
end

local function read_stream(self, spec, session, on_first)
  spec.max_body_bytes = spec.max_body_bytes or 256 << 20
  local opened, e = http.open(spec)
  if not opened then return nil, e, failure.transport_again(e) end
  local response <close> = opened
  remember_cookies(self, session, response.headers)
  local kind = response.headers:get "Content-Type" or ""
  if response.status == 200 and not kind:find("json", 1, true) and not kind:find("html", 1, true) then
    local text, bad, again = stream.read(response, on_first)
    return text, text and response or bad, again
  end
  local body, bad, again = read_rest(response)
  if not body then return nil, bad, again end
  if response.status == 200 then return body, response end -- a server that does not stream
  local after = retry.after(response.headers:get "Retry-After", time.now(), http.date)
  bad, again = failure.of_status(response.status, body, after)
  return nil, bad, again, after
end

local function check_tokens(self, response)
  if self._tokens == "none" then response.tokens = nil end
  if self._tokens ~= "require" then return response end
  local got = response.tokens
  if got and got.out and got.lp then return response end
  return nil, err.new("model", "tokens = \"require\", but the server sent no token ids and log-probs "
    .. "(vLLM 0.10.2 or newer sends them)")
end

-- A server that is paused, or loads weights, gives up what it generates and says so. Such a piece is no answer: the whole
-- call is made again.
local CUT = { abort = true, aborted = true, cancelled = true }

local function cut_off(text, word)
  return err.new("model", ("the server gave up this answer (finish_reason %s)"):format(word), { body = failure.snippet(text) })
end

local function read_reply(self, text, request, status)
  local decoded, repaired = reply.decode(text)
  if not decoded then return nil, failure.of_body(repaired, text, status) end
  local bad, again = failure.of_reply(decoded, text)
  if bad then return nil, bad, again end
  local response, why = reply.response(decoded, request)
  if not response then return nil, failure.of_body(why, text, status) end
  response.repaired = response.repaired or repaired
  if CUT[response.finish.raw] then return nil, cut_off(text, response.finish.raw), true end
  return check_tokens(self, response)
end

local function spec_for(self, place, body, session, limit_s)
  return {
    method = "POST", url = place.url, headers = headers_for(self, session), body = body,
    connect_timeout_s = self._connect_s, idle_timeout_s = self._idle_s, timeout_s = limit_s,
    max_body_bytes = self._max_body, unix_socket = self._unix,
    proxy = self._proxy, ca_file = self._ca_file, insecure = self._insecure,
  }
end

local function one_try(self, request, body, place, limit_s)
  local session, streams = request.session, request.stream
  if streams == nil then streams = self._stream end
  local times = { queued = time.now() }
  local began = time.monotonic()
  local abort = self._abort_path
  local watch <close> = abort and orphan.watch(spec_for(self, place, body, session, limit_s), abort) or nil
  local text, got, again, after
  if streams then
    local function on_first() times.first = times.first or time.now() end
    local spec = watch and watch.spec or spec_for(self, place, body, session, limit_s)
    text, got, again, after = read_stream(self, spec, session, on_first)
  elseif watch then
    text, got, again, after = read_whole(self, session, http.request(watch.spec))
  else -- no local holds the request while it is waited for
    text, got, again, after = read_whole(self, session, http.request(spec_for(self, place, body, session, limit_s)))
  end
  -- A status is an answer; with an errno the request mostly never left, and nobody would hear.
  if watch and (text or got.http_status or got.sys) then watch:done() end
  if not text then
    if times.first then got.times = times end -- it had begun to answer
    return nil, got, again, after
  end
  times.done = time.now()
  local timing = got.timing or {}
  if not times.first then times.first = times.queued + (timing.queue_s or 0) + (timing.first_byte_s or 0) end
  local response, bad, retry_it = read_reply(self, text, request, got.status)
  if not response then return nil, bad, retry_it end
  response.raw_request, response.raw_response, response.times = body, text, times
  self._stats.model_s = self._stats.model_s + time.monotonic() - began
  return response
end

-- ---------------------------------------------------------------- calls

--- A call on its way; thousands wait at once, so that this is all that there is of one.
---@class agentbox.OpenAiCall
---@field model agentbox.OpenAiModel
---@field request agentbox.Request
---@field name string              # the server's for the model
---@field body string
---@field at? integer              # where the messages begin in it, when the record has them, and
---@field bytes? integer           # their size
---@field session? string
---@field timeout_s? number
---@field failed? agentbox.Place   # that the last try should not go to again
local Call = {}

-- It is counted until the block is left, by whatever way.
function Call:__close()
  local stats = self.model._stats
  stats.running = stats.running - 1
end

-- What the outcome of a try says about the server: `busy` is too much for it, `bad` a failure of its own; what the
-- machine here lacks says nothing.
local function judge(turn, got, e, after)
  if got then return turn:done("ok", { tokens = got.usage and got.usage.total }) end
  if e.sys and e.code ~= "network" then return end
  local status = e.http_status
  if status == 429 or status == 529 or status == 503 and after then return turn:done("busy", { after_s = after }) end
  if e.code == "context" or status and status >= 400 and status < 500 and status ~= 408 then return turn:done "ok" end
  turn:done("bad", { after_s = after })
end

local function note_wait(self, event)
  local stats = self._stats
  stats.retries, stats.waiting = stats.retries + 1, stats.waiting + 1
  local e = event.err
  stats.next_try_at, stats.trouble = time.now() + event.wait_s, e.msg
  if e.sys == EMFILE and not self._told then
    self._told = true -- calls go on as descriptors become free, but not as many at once as were asked for
    log.warn(("%s: %s"):format(self.name, e.msg))
  end
  if not self._on_retry then return end
  self._on_retry {
    attempt = event.attempt, wait_s = event.wait_s, code = e.code, msg = e.msg, http_status = e.http_status,
    session = event.session, model = self.name,
  }
end

-- The bounds of all calls.
local function retry_opts(self, opts)
  return {
    max_tries = opts.max_tries, max_s = opts.max_retry_s, base_s = opts.retry_base_s, cap_s = opts.retry_cap_s,
    on_wait = function(event) note_wait(self, event) end,
    on_go = function() self._stats.waiting = self._stats.waiting - 1 end,
  }
end

-- The first requests of a group's members are the same bytes, and each is held until it is answered.
local known_body = recent.new(16, 256 << 10)

-- The body, and where in it the messages are that the record has, too.
local function body_of(self, request, name)
  local body, at, bytes = wire.body(request, {
    model = name, sampling = self._sampling, extra = self._extra,
    stream = request.stream == nil and self._stream or request.stream,
  })
  return known_body(body), at, bytes
end

local function begun(self, request)
  local name, stats = self.name, self._stats
  local body, at, bytes = body_of(self, request, name)
  stats.calls, stats.running = stats.calls + 1, stats.running + 1
  return setmetatable({
    model = self, request = request, name = name, body = body, at = at, bytes = bytes, session = request.session,
    timeout_s = request.timeout_s,
  }, Call)
end

local function attempt(_, left_s, call)
  local self, request = call.model, call.request
  local turn <close>, late = self._places:enter {
    session = call.session, failed = call.failed, bytes = #call.body, clock = request.clock and request:clock(),
  }
  if not turn then return nil, late, false end
  local served = request.dispatch and request.dispatch() or self.name
  if served ~= call.name then
    call.name = served
    call.body, call.at, call.bytes = body_of(self, request, served)
  end
  self._stats.tries = self._stats.tries + 1
  local limit_s = math.max(0.001, math.min(self._timeout_s, left_s))
  local got, bad, again, after = one_try(self, request, call.body, turn.place, limit_s)
  judge(turn, got, bad, after)
  if got then return got end
  bad.queue_s = (bad.queue_s or 0) + turn.waited_s
  call.failed = again and not after and turn.place or nil
  return nil, bad, again, after
end

--- Asks for one reply. Waits, retries what is worth it, and never takes an error's text for an answer.
---
--- Returns nil, err: `context` (the conversation does not fit any more), `model` (the server said no, or said nothing
--- usable until the tries were used up: `http_status`, `attempts`, `body`), `network`, `timeout`.
---@async
---@nodiscard
---@param request agentbox.Request
---@return agentbox.Response? response
---@return agentbox.Err? err
function Model:complete(request)
  local call <close> = begun(self, request)
  local response, e, tries = retry.run(self._retry, attempt, call)
  if response then
    response.tries, response.history_at, response.history_bytes = tries, call.at, call.bytes
    return response
  end
  self._stats.failures = self._stats.failures + 1
  e.raw_request = call.body
  if tries > 1 then e.msg = ("%s (after %d tries)"):format(e.msg, tries) end
  if self._assumed and e.code == "network" then e.msg = e.msg .. "; no base_url was given, so OpenAI's was asked" end
  return nil, e
end

--- Counters since the handle was opened; `waiting` calls are in back-off now, the next one goes on at `next_try_at`;
--- `held` calls wait for a server's turn. `places` tells each server's own.
---@return table<string, any>   # calls, running, tries, retries, waiting, held, failures, model_s, next_try_at, trouble, places
function Model:stats()
  local copy = {}
  for key, value in pairs(self._stats) do copy[key] = value end
  if copy.waiting == 0 then copy.next_try_at, copy.trouble = nil, nil end
  copy.held, copy.places = self._places.waiting, self._places:list()
  return copy
end

local function without_login(url)
  return (url:gsub("//[^/@]*@", "//"):gsub("%?.*$", ""))
end

--- What the record says about this model; nothing secret.
---@return table   # the same one each time; not to be written to
function Model:describe()
  if self._described then return self._described end
  local urls = json.array {}
  for i, place in ipairs(self._places:list()) do urls[i] = without_login(place.url):gsub("/chat/completions$", "") end
  local names = json.array {}
  for i, header in ipairs(self._headers) do names[i] = header[1] end
  local extra = self._extra and json.raw(secret.redact(json.encode(self._extra))) or nil
  self._described = {
    name = self.name, kind = "openai", base_urls = urls, sampling = self._sampling, stream = self._stream,
    tokens = self._tokens, timeout_s = self._timeout_s, max_tries = self._retry.max_tries,
    extra_headers = #names > 0 and names or nil, extra_body = extra,
  }
  return self._described
end

--- No more calls of that session will come: its server may take another, its cookies are forgotten.
---@param session string
function Model:forget(session)
  self._places:forget(session)
  if not self._cookies[session] then return end
  self._cookies[session], self._cookie_count = nil, self._cookie_count - 1
end

--- Nothing to release: connections belong to the engine.
function Model.close() end
Model.__close = Model.close

-- A map or a list of pairs, as a list in a fixed order.
local function header_list(headers)
  local list = {}
  for name, value in pairs(headers or {}) do
    list[#list + 1] = type(name) == "number" and value or { name, value }
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- Calls that wait for a server that is down look like a hang; a line says what they wait for.
local function teller(name)
  return function(place, state)
    if state == "narrowed" then return log.info("%s: fewer calls at once: %d", name, place.gate.max) end
    local url = place.url:gsub("//[^/@]*@", "//")
    if state == "up" then return log.warn("%s: %s answers again", name, url) end
    if place.downs == 1 then
      log.warn("%s: %s fails again and again; one call at a time tries it, the others wait", name, url)
    end
  end
end

local function tokens_wanted(extra)
  local out = { return_token_ids = true, logprobs = true }
  for key, value in pairs(extra or {}) do out[key] = value end
  return out
end

--- Makes the handle of checked options; `agentbox.model.open` is what checks them.
---@param opts table
---@return agentbox.OpenAiModel
function M.new(opts)
  local urls = {}
  for i, url in ipairs(opts.base_urls) do urls[i] = address(url) end
  local self = setmetatable({
    name = opts.model, _places = places.new(urls, {
      limit = opts.limit, adaptive = opts.adaptive, target_latency_s = opts.target_latency_s,
      requests_per_minute = opts.requests_per_minute, tokens_per_minute = opts.tokens_per_minute,
      on_state = teller(opts.model),
    }), _key = opts.api_key, _sampling = opts.sampling,
    _extra = opts.tokens == "require" and tokens_wanted(opts.extra_body) or opts.extra_body,
    _headers = header_list(opts.extra_headers), _stream = opts.stream, _tokens = opts.tokens,
    _timeout_s = opts.timeout_s, _connect_s = opts.connect_timeout_s, _idle_s = opts.idle_timeout_s,
    _max_body = opts.max_body_bytes, _unix = opts.unix_socket, _proxy = opts.proxy,
    _abort_path = opts.abort_path, _ca_file = opts.ca_file, _insecure = opts.insecure, _on_retry = opts.on_retry,
    _assumed = opts.assumed, _cookies = {}, _cookie_count = 0,
    _stats = { calls = 0, running = 0, tries = 0, retries = 0, waiting = 0, failures = 0, model_s = 0 },
  }, Model)
  self._retry = retry_opts(self, opts)
  return self
end

return M

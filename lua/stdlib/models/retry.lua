--- The one retry layer: what a model server may do wrong for a while.
---
--- Waits are exponential with full jitter; a Retry-After is never undercut. The number of tries and the time they take
--- together are both bounded, so that a server that says 429 for ever ends as an error.
local time = require "agentbox.time"
local async = require "agentbox.async"

local M = {}

--- With less time left nothing can be answered. A try that used up all its time is the last one, also where its timer was a
--- moment early: another would only hide what had come.
local LEAST_S = 0.05

local RETRIED = { [408] = true, [409] = true, [425] = true, [429] = true, [529] = true }

--- Is that status worth another try?
---@param status integer
---@return boolean
function M.status(status)
  return RETRIED[status] == true or (status >= 500 and status <= 599 and status ~= 501 and status ~= 505)
end

--- Seconds that a Retry-After header asks for: a number of seconds or an HTTP date.
---@param value string?
---@param now number           # unix seconds
---@param parse_date fun(text: string): integer?
---@return number?
function M.after(value, now, parse_date)
  if not value then return nil end
  local seconds = tonumber(value)
  if not seconds then
    local at = parse_date(value)
    seconds = at and at - now
  end
  return seconds and seconds == seconds and math.max(0, seconds) or nil
end

--- The wait before try `n + 1`.
---@param n integer            # tries made
---@param opts { base_s: number, cap_s: number }
---@param after_s number?      # what the server asked for
---@return number
function M.wait_s(n, opts, after_s)
  local ceiling = math.min(opts.cap_s, opts.base_s * 2 ^ (n - 1))
  if after_s then return after_s + math.random() * math.min(opts.base_s, opts.cap_s) end
  return math.random() * ceiling
end

local function pause(seconds, on_go)
  local _ <close> = setmetatable({}, { __close = on_go or function() end })
  async.sleep(seconds)
end

---@class agentbox.RetryOpts
---@field max_tries integer
---@field max_s number          # tries and waits together; time in our own queue is not counted
---@field base_s number         # the first wait is at most this
---@field cap_s number          # no wait without Retry-After is longer
---@field on_wait? fun(event: { attempt: integer, wait_s: number, err: agentbox.Err, session?: string })   # a wait begins
---@field on_go? fun()          # and ends, also when the caller is cancelled meanwhile

--- Calls `try(n, left_s)` until it gives a value, a failure that is not to be retried, or the bounds are reached.
---
--- `try` returns a value, or nil, err and whether to try again, and what the server asked to wait.
--- The error that comes out has `tries` and, in its text, how often it was tried.
---@async
---@generic T
---@param opts agentbox.RetryOpts
---@param try fun(n: integer, left_s: number, call: table?): T?, agentbox.Err?, boolean?, number?
---@param call? { timeout_s?: number, session?: string }   # what is particular to this call
---@return T? value
---@return agentbox.Err? err
---@return integer tries
function M.run(opts, try, call)
  local began, queued = time.monotonic(), 0
  local n, max_s = 0, math.min(opts.max_s, call and call.timeout_s or math.huge)
  while true do
    n = n + 1
    local left = max_s - (time.monotonic() - began - queued)
    local value, err, again, after = try(n, left, call)
    if value then return value, nil, n end
    queued = queued + (err.queue_s or 0)
    err.tries, err.attempts = n, n
    left = max_s - (time.monotonic() - began - queued)
    local wait = again and n < opts.max_tries and M.wait_s(n, opts, after)
    if not wait or wait >= left - LEAST_S then return nil, err, n end
    if opts.on_wait then opts.on_wait { attempt = n, wait_s = wait, err = err, session = call and call.session } end
    pause(wait, opts.on_go)
  end
end

return M

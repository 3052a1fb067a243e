--- `agentbox traj stats RUN...`.
local json = require "agentbox.json"
local out = require "agentbox.cli._out"
local summary = require "agentbox.cli._summary"

local M = {}

local function put(format, ...)
  io.stdout:write(select("#", ...) > 0 and format:format(...) or format, "\n")
end

local function usage(msg, ...)
  return nil, { code = "usage", msg = msg:format(...) }
end

local function read_ks(text)
  if not text then return nil end
  local ks = {}
  for part in (text .. ","):gmatch "(.-)," do
    local k = math.tointeger(tonumber(part))
    if not k or k < 1 then return usage("--pass-at: %s is no whole number from 1 on", out.line(part)) end
    ks[#ks + 1] = k
  end
  return ks
end

local function check_prices(prices, where)
  if not json.is_object(prices) then
    return nil, { code = "config", msg = where .. ": prices must be an object by model" }
  end
  for name, price in pairs(prices) do
    local fine = json.is_object(price) and type(price.prompt) == "number" and type(price.completion) == "number"
    if not fine or price.cached ~= nil and type(price.cached) ~= "number" then
      local needs = "%s: the price of %s needs the numbers prompt and completion, and may have cached"
      return nil, { code = "config", msg = needs:format(where, out.line(tostring(name))) }
    end
  end
  return prices
end

--- The price table of a file, or of the configuration when no file is named; nil when there is none.
---@async
---@param path? string
---@return table<string, agentbox.Price>?
---@return agentbox.Err? err
local function read_prices(path)
  if path then
    local text, problem = require "agentbox.sys.fs".read(path, 1 << 20)
    if not text then return nil, problem end
    local doc, damage = require "agentbox.yaml".decode(text)
    if doc == nil then return nil, { code = "config", msg = ("%s: %s"):format(path, damage.msg) } end
    return check_prices(doc, path)
  end
  local config, problem = require "agentbox.config".load()
  if not config then return nil, problem end
  local prices, bad = config:get "prices"
  if bad then return nil, bad end
  if prices == nil then return nil end
  return check_prices(prices, config.path)
end

M.read_prices = read_prices

local function number(value)
  if value == nil then return "-" end
  if value == math.floor(value) and math.abs(value) < 1e15 then return ("%d"):format(value) end
  return (math.abs(value) >= 1000 and "%.0f" or "%.4g"):format(value)
end

local function spread(name, p, unit)
  if not p then return end
  put("%s: mean %s, p50 %s, p90 %s, p99 %s, max %s%s", name, number(p.mean), number(p.p50), number(p.p90),
    number(p.p99), number(p.max), unit or "")
end

local function put_rewards(report)
  local reward = report.reward
  if not reward then return put "reward: none scored" end
  put("reward: mean %s, deviation %s, p50 %s, min %s, max %s", number(reward.mean), number(reward.deviation),
    number(reward.p50), number(reward.min), number(reward.max))
  local parts = {}
  for i, pair in ipairs(reward.values or {}) do parts[i] = ("%s x %d"):format(number(pair[1]), pair[2]) end
  if #parts > 0 then put("  values: %s", table.concat(parts, ", ")) end
end

local function put_passes(report)
  local parts = {}
  for _, entry in ipairs(report.pass_at) do
    local rate = entry.rate ~= json.null and ("%.1f %%"):format(100 * entry.rate) or "-"
    parts[#parts + 1] = ("pass@%d %s (%d tasks)"):format(entry.k, rate, entry.tasks)
  end
  if #parts > 0 then put(table.concat(parts, ", ")) end
end

local function put_models(report)
  for name, sum in pairs(report.models) do
    put("model %s: %d calls, %d prompt tokens (%d cached), %d completion tokens%s", out.line(name), sum.calls,
      sum.prompt, sum.cached, sum.completion, sum.cost and (", $%.2f"):format(sum.cost) or "")
  end
  if report.cost then put("cost: $%.2f", report.cost) end
  if report.unpriced then put("  without a price: %s", out.line(table.concat(report.unpriced, ", "))) end
end

local function put_times(report)
  local parts, total = {}, report.time_ms.total_ms
  for _, name in ipairs { "boot", "seed", "model", "tool", "score" } do
    local part = report.time_ms[name]
    if part and total > 0 then parts[#parts + 1] = ("%s %.1f %%"):format(name, 100 * part.sum / total) end
  end
  if total <= 0 then return end
  put("time of rollouts: %s in all: %s, other %.1f %%", summary.duration(total / 1000), table.concat(parts, ", "),
    100 * report.time_ms.other_ms / total)
  spread("queued", report.time_ms.queued, " ms")
end

local function put_report(path, report)
  put("%s", out.line(path))
  put("rollouts: %d of %d tasks in %d groups; %d scored, %d unscored, %d retries", report.rollouts, report.tasks,
    report.groups, report.scored, report.unscored, report.retries)
  put("status: %s", summary.counts(report.by_status))
  put("stop: %s", summary.counts(report.by_stop))
  if next(report.by_class) then put("class: %s", summary.counts(report.by_class)) end
  put_rewards(report)
  put_passes(report)
  spread("duration", report.duration_s, " s")
  spread("steps", report.steps)
  spread("tool calls", report.tool_calls)
  spread("tokens", report.tokens)
  put_models(report)
  put_times(report)
end

--- Sums up, prints, and gives the exit status.
---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.run(args)
  local ks, problem = read_ks(args.pass_at)
  if problem then return nil, problem end
  local prices
  prices, problem = read_prices(args.prices)
  if problem then return nil, problem end
  for i, path in ipairs(args.run) do
    local statistics, bad = require "agentbox.store.stats".of(path)
    if not statistics then return nil, bad end
    local report = statistics:report { k = ks, prices = prices }
    if args.json then
      local object = json.object { path = path }
      for key, value in pairs(report) do object[key] = value end
      put("%s", json.encode(object))
    else
      if i > 1 then put "" end
      put_report(path, report)
    end
  end
  return 0
end

return M

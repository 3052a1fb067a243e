--- agents/tool_loop.lua: the built-in agent. Ask the model, run the calls it makes, answer them, again.
---
---     top of a turn ── a limit is reached ──────────────► max_turns, token_budget, wall_timeout
---       │ ask ── overflow / failure ────────────────────► context_length / model_error
---       │ reply without calls ── text ──────────────────► final_answer (call_length when it was cut off)
---       │                     └─ nothing, three times ──► no_progress
---       │ reply with calls ── run, answer each ─┬────────► sandbox_error, tool_error, tool_stop
---       └◄─────────────────────────────────────┘ the same reply or only unusable calls, too often: no_progress
local err = require "agentbox.err"
local json = require "agentbox.json"
local outcome = require "agentbox.outcome"
local schema = require "agentbox.schema"

local M = {}

local OPTIONS = {
  before_turn = { "function" },   -- (ctx, turn) → stop reason or nil
  after_turn = { "function" },    -- (ctx, turn, results) → stop reason or nil
  on_answer = { "function" },     -- (ctx, text) → what the user says to it, or nil: it was the last
  on_tool_call = { "function" },  -- (ctx, call) → text that answers the call instead of running it, or nil
  max_repeats = { "integer", default = 6, min = 0 },    -- identical turns in a row; 0 is no limit
  max_malformed = { "integer", default = 5, min = 0 },  -- turns in a row without one usable call
  max_empty = { "integer", default = 3, min = 0 },      -- replies in a row without text or calls
}

local NUDGE = "Your last reply was empty. Call a tool to go on, or reply with text to finish."
local CUT_OFF = "ERROR: your reply was cut off at the output limit before this call was complete; it was not run. "
  .. "Make a shorter call."

-- ---------------------------------------------------------------- progress

local NO_CALLS = {}

--- Notices a model that is stuck; each count is of turns in a row.
local function new_progress(opts)
  return { opts = opts, repeats = 0, malformed = 0, empty = 0 }
end

-- Whether a count has reached its limit; 0 is no limit.
local function stuck(count, limit) return limit > 0 and count >= limit end

--- Whether a turn said, called and heard the same as the one before.
local function is_repeated(progress, message, results)
  local last, heard = progress.message, progress.results
  progress.message, progress.results = message, results
  if not last or last.content ~= message.content then return false end
  local before, calls = last.tool_calls or NO_CALLS, message.tool_calls or NO_CALLS
  if #before ~= #calls then return false end
  for i = 1, #calls do
    local a, b = before[i]["function"], calls[i]["function"]
    if a.arguments ~= b.arguments or a.name ~= b.name or heard[i].text ~= results[i].text then return false end
  end
  return true
end

local function unusable(results)
  for i = 1, #results do
    if not results[i].malformed then return false end
  end
  return true
end

local function note_turn(progress, message, results)
  progress.repeats = is_repeated(progress, message, results) and progress.repeats + 1 or 1
  progress.malformed = unusable(results) and progress.malformed + 1 or 0
  progress.empty = 0
  local opts = progress.opts
  if stuck(progress.repeats, opts.max_repeats) then
    return "no_progress", ("%d identical turns in a row"):format(progress.repeats)
  end
  if stuck(progress.malformed, opts.max_malformed) then
    return "no_progress", ("%d turns in a row without a usable call"):format(progress.malformed)
  end
end

-- ---------------------------------------------------------------- one turn

--- A final answer, unless the hook has something to say to it.
local function answered(ctx, content, progress, on_answer)
  local said, detail
  if on_answer then said, detail = on_answer(ctx, content) end
  if said == nil then return "final_answer", detail end
  if type(said) ~= "string" then error("agent.tool_loop: on_answer must return a text or nil, not a " .. type(said), 0) end
  progress.empty = 0
  ctx:inject("user", said)
  ctx.budget:end_turn()
end

local function without_calls(ctx, response, progress, opts)
  local content = response.message.content
  if type(content) == "string" and content:find("%S") then
    if response.finish.norm == "length" then return "call_length", "the reply was cut off at the output limit" end
    return answered(ctx, content, progress, opts.on_answer)
  end
  if response.finish.norm == "content_filter" then return "model_abort", "the server filtered the reply" end
  if response.finish.norm == "length" then return "call_length", "the output limit was reached before any text" end
  progress.empty = progress.empty + 1
  if stuck(progress.empty, opts.max_empty) then return "no_progress", ("%d empty replies in a row"):format(progress.empty) end
  ctx:inject("user", NUDGE)
end

local function cut_off(calls)
  local results = {}
  for i, call in ipairs(calls) do
    results[i] = {
      name = call["function"].name, call_id = call.id, text = CUT_OFF, is_error = true, malformed = true, facts = {},
      error = "cut off", }
  end
  return results
end

--- Calls that the hook answers itself are not run; the others keep their order.
local function run_calls(ctx, calls, on_tool_call)
  if not on_tool_call then return ctx:run_tools(calls) end
  local results, rest, places = {}, {}, {}
  for i, call in ipairs(calls) do
    local text = on_tool_call(ctx, call)
    if text ~= nil and type(text) ~= "string" then
      error("agent.tool_loop: on_tool_call must return a text or nil, not a " .. type(text), 0)
    elseif text then
      results[i] = { name = call["function"].name, call_id = call.id, text = text, is_error = false, facts = {} }
    else
      rest[#rest + 1], places[#rest + 1] = call, i
    end
  end
  for i, result in pairs(ctx:run_tools(rest)) do results[places[i]] = result end
  return results
end

local function stop_of_results(results)
  for _, result in next, results do
    if result.infra then
      return err.class(result.infra) == "sandbox" and "sandbox_error" or "tool_error", result.infra
    end
    if result.facts.broken then return "sandbox_error", { class = "policy", msg = result.facts.broken } end
    if result.facts.stop then return result.facts.stop == "env_done" and "env_done" or "tool_stop" end
  end
end

local function with_calls(ctx, response, progress, opts)
  local calls = response.message.tool_calls
  local results
  if response.finish.norm == "length" then
    results = cut_off(calls)
  else
    results = run_calls(ctx, calls, opts.on_tool_call)
  end
  ctx:answer(calls, results)
  ctx.budget:end_turn()
  local reason, detail = stop_of_results(results)
  if reason then return reason, detail end
  reason, detail = note_turn(progress, response.message, results)
  if reason then return reason, detail end
  return opts.after_turn and opts.after_turn(ctx, ctx.budget.turns, results)
end

local function turn(ctx, progress, opts)
  local response, problem = ctx:ask()
  if not response then return outcome.of_call(problem, ctx.budget), problem end
  local calls = response.message.tool_calls
  if calls and calls ~= json.null and #calls > 0 then return with_calls(ctx, response, progress, opts) end
  return without_calls(ctx, response, progress, opts)
end

-- ---------------------------------------------------------------- the loop

--- Makes the agent.
---@param opts? table   # before_turn, after_turn, on_answer, on_tool_call, max_repeats, max_malformed, max_empty
---@return fun(ctx: agentbox.Ctx): string, any   # stop reason and, for failures, why
function M.new(opts)
  opts = schema.options(opts, OPTIONS, "agent.tool_loop")
  return function(ctx)
    local progress = new_progress(opts)
    while true do
      ctx:pause()
      local reason, detail = ctx.budget:over(), nil
      if not reason and opts.before_turn then reason, detail = opts.before_turn(ctx, ctx.budget.turns + 1) end
      if not reason then reason, detail = turn(ctx, progress, opts) end
      if reason then return reason, detail end
    end
  end
end

return M

--- One member of a group, from its first attempt to the result that stands.
---
--- An attempt that the infrastructure spoilt is recorded and made again in a fresh sandbox, with the next attempt number,
--- a few times; whatever the policy did stands at once. Every attempt of the run that ended is in the record.
local async = require "agentbox.async"
local groups = require "agentbox.runner.group"
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local model = require "agentbox.model"
local rollout = require "agentbox.rollout"

local M = {}

--- Whose failures are worth another attempt. A task's own fault and a defect of the lab's code would only come again.
local RETRIED = { sandbox = true, model_server = true, verifier = true }

local MAX_WAIT_S = 60

--- A number for sampling, the same whenever the run with that seed is made again.
---@param seed integer
---@param member agentbox.Member
---@return integer
function M.seed_of(seed, member)
  local text = ("%d\0%s\0%d"):format(seed, groups.slot(member), member.attempt)
  return tonumber(hash.sha256(text):sub(1, 7), 16)
end

-- Unique in the run, and for a server that keeps sessions: an attempt that became stale is made again under another one.
local function id_of(run, member)
  local id = ("%s/%s"):format(run.run_id:sub(1, 8), groups.slot(member))
  if member.stale then return ("%s~%d.%d"):format(id, member.attempt, member.stale) end
  return member.attempt == 0 and id or ("%s~%d"):format(id, member.attempt)
end

-- The model of a rollout, and what is to be closed after it: one that `prepare` chose is the run's like any other.
local function model_of(run, chosen)
  if not chosen then return run.models.agent end
  local handle, problem = model.resolve(chosen)
  if not handle then return nil, problem end
  return run.models.agent:beside(handle), handle ~= chosen and handle or nil
end

local function options(run, member)
  local group, out = member.group, {}
  for key, value in pairs(run.rollout) do out[key] = value end
  local chosen
  if run.opts.prepare then
    local problem
    chosen, problem = run.opts.prepare(group.task, { group = group.id, index = member.index, attempt = member.attempt })
    if not chosen and problem then return nil, problem end
  end
  for key, value in pairs(chosen or {}) do out[key] = value end
  out.task, out.run_id, out.id = group.task, run.run_id, id_of(run, member)
  local made
  out.model, made = model_of(run, out.model)
  if not out.model then return nil, made end
  out.attempt = member.attempt
  out.group = { id = group.id, index = member.index, size = group.size }
  if run.opts.seed then
    out.seed = M.seed_of(run.opts.seed, member)
    if out.model.seed_per_member then
      local sampling = {}
      for key, value in pairs(out.sampling or {}) do sampling[key] = value end
      sampling.seed = out.seed
      out.sampling = sampling
    end
  end
  return out, made
end

--- What is kept of a trajectory once it is on the disk.
---@param traj agentbox.Traj
---@return table result
function M.keep(traj)
  local metrics = traj.metrics
  local function plain(value) return value ~= json.null and value or nil end
  return {
    id = traj.id, scored = traj.scored, reward = traj.reward, outcome = plain(traj.outcome),
    final_status = traj.final_status, stop = traj.stop_reason, class = traj.failure_class, steps = metrics.steps,
    tokens = metrics.total_tokens, duration_s = metrics.duration_s, version_min = traj.version_min,
    version_max = traj.version_max, error = traj.error,
  }
end

local function unstarted(run, member, problem, class)
  return {
    id = id_of(run, member), scored = false, final_status = "error", stop = class == "task" and "task_error" or "shutdown",
    class = class, error = problem,
  }
end

-- What a rollout has of its run, given back however it ends.
local Share = { __close = function(share)
  if not share.id then return end
  share.run.by_id[share.id] = nil
  share.asked:forget(share.id)
  if share.made and share.made.close then share.made:close() end
end }

-- The options live no longer than this: a rollout waits for hours, and thousands do.
local function start(run, member, share)
  local opts, made = options(run, member)
  if not opts then return nil, made end
  share.id, share.asked, share.made = opts.id, opts.model, made
  opts.on_end = function(traj) member.traj = traj end
  return rollout.start(opts)
end

-- Runs the rollout. What it ends as is noted on every path, so that whoever cancels it can still record it.
local function perform(run, member)
  local share <close> = setmetatable({ run = run }, Share)
  local ro <close>, bad = start(run, member, share) -- luacheck: ignore
  if not ro then return nil, bad end
  member.rollout, member.id = ro, share.id
  run.by_id[share.id] = member
  return ro:finish()
end

--- Writes an attempt down; nil, err is the end of the run.
---@async
---@param run agentbox.Run
---@param traj agentbox.Traj
---@return table? result
---@return agentbox.Err? err
function M.record(run, traj)
  local result = M.keep(traj)
  local stored, problem = run.store:append(traj)
  if not stored then return nil, problem end
  result.segment, result.offset = stored.segment, stored.offset
  return result
end

local function attempt(run, member)
  member.traj, member.version = nil, nil
  member.began = run.now()
  local traj, problem = perform(run, member)
  member.rollout = nil
  if not traj then return unstarted(run, member, tostring(problem.msg or problem), "task") end
  member.state = "storing"
  local result
  result, problem = M.record(run, traj)
  member.traj = nil
  if not result then run:_fail(problem) end
  return result
end

--- Stops a member. What it ends as is recorded, unless the run stops or another member has taken its place. One that is
--- being recorded is left alone.
---@param member agentbox.Member
---@param kind "straggler"|"late"|"surplus"|"stale"|"user"|"stop"
---@param detail string
function M.stop(member, kind, detail)
  if member.ending or member.state == "ended" or member.state == "storing" or not member.fiber then return end
  member.ending = { kind = kind, detail = detail }
  if member.rollout then
    member.rollout.ending = { reason = kind == "user" and "user_cancel" or "shutdown", detail = detail }
  end
  if member.started then member.fiber:cancel() end -- one that is cancelled before it runs would not even end
end

local function wait_s(run, member)
  return math.min(MAX_WAIT_S, run.opts.retry_wait_s * 2 ^ member.attempt) * (0.5 + math.random() / 2)
end

--- Makes attempts until one stands, and hands its result to the run.
---@async
---@param run agentbox.Run
---@param member agentbox.Member
function M.run(run, member)
  while true do
    member.state = "running"
    local result = attempt(run, member)
    if not result then return end
    local again = RETRIED[result.class] and not result.scored and member.attempt + 1 < run.opts.attempts
        and not run:_gives_up(member.group)
    run:_attempt_ended(member, result, again)
    if not again then return run:_member_ended(member, result) end
    if run.state ~= "running" then return end -- the resumed run makes the next attempt
    member.state = "waiting"
    local pause = wait_s(run, member)
    member.attempt = member.attempt + 1
    async.sleep(pause)
  end
end

return M

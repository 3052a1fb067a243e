--- verifiers/harbor.lua: Harbor's contract. The agent's sandbox, with every process of the agent dead, gets the tests at /tests;
--- `bash /tests/test.sh` runs there, and what it leaves in /logs/verifier/ is the reward: one number in reward.txt, or named
--- ones in reward.json. No file, or one that does not read as that, is the verifier's failure and no 0.
local command = require "agentbox.verifiers.command"
local err = require "agentbox.err"
local json = require "agentbox.json"
local schema = require "agentbox.schema"

local M = {}

local COMMAND = "bash /tests/test.sh"
local MAX_REWARD = 64 << 10

-- What an agent may have put there before is gone, links too.
local PREPARE = [[
for dir in /logs /logs/verifier /tests; do [ ! -L "$dir" ] || rm -f "$dir"; done
rm -rf /tests /logs/verifier
mkdir -p /tests /logs/verifier /logs/agent /logs/artifacts && chmod 777 /logs/verifier
]]

local function failure(text, facts)
  local said = facts and (facts.stdout .. facts.stderr):sub(-400) or ""
  return nil, err.new("verifier", text .. (said:find "%S" and ": " .. said or ""))
end

local function prepare(sb, task)
  local out, problem = sb:exec(PREPARE, { user = 0, timeout_s = 60, cwd = "/" })
  if not out then return nil, problem end
  if out.exit_code ~= 0 then return failure("/tests cannot be made", command.facts(out, "")) end
  for _, path in ipairs(schema.names(task.hidden)) do
    local file = task.hidden[path]
    local ok
    ok, problem = sb:write("/" .. path, file.bytes, { mode = file.mode | 292 })
    if not ok then return nil, err.wrap(problem, "writing /" .. path) end
  end
  return true
end

local function number_of(text)
  local bare = text:match "^%s*(.-)%s*$"
  return bare:find "^[+-]?%d*%.?%d*[eE]?[+-]?%d*$" and tonumber(bare) or nil
end

local function named_of(text)
  local doc = json.decode(text)
  if not json.is_object(doc) then return nil end
  local out, n = {}, 0
  for _, name in ipairs(json.keys(doc)) do
    if type(doc[name]) ~= "number" then return nil end
    out[name], n = doc[name] + 0.0, n + 1
  end
  return n > 0 and out or nil
end

local function reward_of(sb, facts)
  for _, kind in ipairs { { "reward.txt", number_of }, { "reward.json", named_of } } do
    local path = "/logs/verifier/" .. kind[1]
    local st = sb:stat(path)
    if st then
      local bytes = st.type == "file" and sb:read(path, { max_bytes = MAX_REWARD }) or ""
      local value = kind[2](bytes)
      if value == nil then return failure(path .. " cannot be read as a reward", facts) end
      return value
    end
  end
  return failure(("no reward was written (exit code %s)"):format(facts.exit_code), facts)
end

---@async
---@param ev agentbox.Evidence
---@return number|table|nil
---@return string|agentbox.Err?
---@return table? facts
function M.run(ev)
  local params = ev.spec.params or {}
  local sb, problem = ev:whole()
  if not sb then return nil, problem end
  local ok
  ok, problem = prepare(sb, ev.task)
  if not ok then return nil, problem end
  local out
  out, problem = sb:exec({ "bash", "/tests/test.sh" }, {
    timeout_s = ev.spec.timeout_s, cwd = ev.workdir, user = ev.user, env = params.env, max_output_bytes = command.MAX_OUTPUT,
  })
  if not out then return nil, problem end
  local facts = command.facts(out, COMMAND)
  if out.timed_out then
    facts.success = false
    return ev.spec.reward_failure, ("no result within %g s"):format(ev.spec.timeout_s), facts
  end
  local reward
  reward, problem = reward_of(sb, facts)
  if reward == nil then return nil, problem end
  return reward, "exit code " .. facts.exit_code, facts
end

return M

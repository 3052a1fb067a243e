--- `agentbox traj tokens PATH#ID`.
local json = require "agentbox.json"
local ledger = require "agentbox.store.ledger"
local out = require "agentbox.cli._out"
local traj = require "agentbox.traj"

local M = {}

local function version_of(call)
  local parts = {}
  for i, segment in ipairs(call.versions or {}) do parts[i] = tostring(segment.v) end
  return table.concat(parts, "+")
end

local function put_entry(entry, call, args)
  local version = version_of(call)
  if args.json then
    local object = json.object {}
    for _, name in ipairs { "call", "src", "drift", "base", "prompt", "keep", "tail", "out", "lp" } do
      object[name] = entry[name]
    end
    object.versions = call.versions
    io.stdout:write(json.encode(object), "\n")
    return
  end
  io.stdout:write(("call %d: prompt %s, %d common%s, %d new; out %d, log-probs %s; %s%s\n"):format(entry.call,
    entry.prompt or "?", entry.keep, entry.base and (" with call %d"):format(entry.base) or "", entry.tail, entry.out,
    entry.lp or "-", out.line(tostring(entry.drift)), version ~= "" and ("; weights %s"):format(version) or ""))
end

--- Prints, and gives the exit status.
---@async
---@param args table
---@return integer? status
---@return agentbox.Err? err
function M.run(args)
  local t, problem = traj.load(args.path)
  if not t then return nil, problem end
  local entries, found = ledger.of(t.line)
  for _, entry in ipairs(entries) do put_entry(entry, t.line.calls[entry.call + 1], args) end
  for _, violation in ipairs(found) do
    io.stderr:write(("agentbox: traj tokens: %s: %s (rule %d)\n"):format(violation.where, out.line(violation.msg),
      violation.rule))
  end
  if #entries == 0 and not args.json then io.stdout:write "no call has token ids\n" end
  return #found == 0 and 0 or 1
end

return M

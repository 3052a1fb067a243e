--- conform/verdict.lua: what the last whole `sandbox conform` said of a backend, so that every trajectory can tell it.
---
--- It is remembered in a file for each backend, program, kernel, user and host name: another one of these, and nothing is
--- known until the suite was run again.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local hash = require "agentbox.sys.hash"
local json = require "agentbox.json"
local os_ = require "agentbox.sys.os"
local time = require "agentbox.sys.time"

local M = {}

---@class agentbox.ConformRecord
---@field verdict "pass"|"fail"|"unknown"
---@field at? number            # when, unix seconds; absent when unknown
---@field cases? integer        # that were ok
---@field differs? integer      # known and allowed differences
---@field failed? string[]      # ids of the cases that failed; absent when it passed

local LARGEST = 65536

-- Below $AGENTBOX_HOME, else $XDG_STATE_HOME/agentbox, else ~/.local/state/agentbox.
local function folder()
  local home = os_.env "AGENTBOX_HOME"
  if home and home ~= "" then return home .. "/conform" end
  local state = os_.env "XDG_STATE_HOME"
  if state and state:sub(1, 1) == "/" then return state .. "/agentbox/conform" end
  home = os_.env "HOME"
  if not home or home == "" then return nil, err.new("config", "no place for a verdict: HOME is not set") end
  return home .. "/.local/state/agentbox/conform"
end

-- The program is known by its size and time: reading six megabytes at the start of each run would tell no more.
local function subject(backend)
  local program = fs.stat "/proc/self/exe" or {}
  local release = fs.read("/proc/sys/kernel/osrelease", 4096) or "?"
  local engine = ({ docker = "DOCKER_HOST", podman = "CONTAINER_HOST" })[backend]
  return table.concat({ backend, os_.version, program.size or 0, program.mtime or 0, release:match "%S*", os_.uid(),
    os_.hostname(), engine and os_.env(engine) or "" }, "\n")
end

local function path_of(backend)
  local dir, problem = folder()
  if not dir then return nil, problem end
  return ("%s/%s-%s.json"):format(dir, backend, hash.sha256(subject(backend)):sub(1, 16)), dir
end

-- What was read, by backend: a process reads each file once.
local known = {}

---Notes how all the cases ended.
---@async
---@param backend string
---@param verdicts agentbox.ConformVerdict[]
---@return agentbox.ConformRecord? record
---@return agentbox.Err? err          # it could not be kept
function M.note(backend, verdicts)
  local path, dir = path_of(backend)
  if not path then return nil, dir end
  local doc = json.object {}
  doc.verdict, doc.at, doc.cases, doc.differs = "pass", time.now(), 0, 0
  local failed = json.array {}
  for _, one in ipairs(verdicts) do
    if one.verdict == "ok" then doc.cases = doc.cases + 1 end
    if one.verdict == "differs" then doc.differs = doc.differs + 1 end
    if one.verdict == "FAIL" then failed[#failed + 1] = one.id end
  end
  if #failed > 0 then doc.verdict, doc.failed = "fail", failed end
  local ok, problem = fs.mkdir(dir, true)
  if ok then ok, problem = fs.write(path, json.encode(doc) .. "\n") end
  if not ok then return nil, problem end
  known[backend] = doc
  return doc
end

local function read(backend)
  local path = path_of(backend)
  local text = path and fs.read(path, LARGEST)
  local doc = text and json.decode(text)
  if json.is_object(doc) and (doc.verdict == "pass" or doc.verdict == "fail") and math.type(doc.at) then return doc end
  local unknown = json.object {}
  unknown.verdict = "unknown"
  return unknown
end

---What is known of a backend.
---@async
---@param backend string
---@return agentbox.ConformRecord
function M.of(backend)
  known[backend] = known[backend] or read(backend)
  return known[backend]
end

return M

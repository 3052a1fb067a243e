--- docker/transfer.lua: folders of the host into a container and out of it, packed (src/sandbox/file_pack.h). The host's
--- side is a process of its own, so that neither a slow container nor a slow disk holds up this one.
local child = require "agentbox.image.child"
local err = require "agentbox.err"
local sys = require "agentbox.sys.sandbox"

local M = {}

local WORD = "--tree-child" -- src/sandbox/tree_child.h
local PIECE = 256 << 10

---A process that packs `dir` to its stdout, or unpacks its stdin there.
---@param verb "pack"|"unpack"
---@param dir string
---@param caps { max_bytes: integer, max_entries: integer }
---@return userdata? process
---@return userdata|agentbox.Err plain_or_err    # to be closed too
function M.open(verb, dir, caps)
  local program, problem = child.program()
  if not program then return nil, problem end
  local plain
  plain, problem = sys.plain { root = "/", workspace = "/", env = child.environment() }
  if not plain then return nil, problem end
  local process
  process, problem = plain:spawn({ program, WORD, verb, dir, tostring(caps.max_bytes), tostring(caps.max_entries) },
    { max_output_bytes = PIECE })
  if process then return process, plain end
  plain:close()
  return nil, problem
end

---What it counted, once it has ended.
---@async
---@param process userdata
---@return table? counts
---@return agentbox.Err? err
function M.counts(process)
  local outcome, problem = process:wait()
  if not outcome then return nil, problem end
  local numbers = {}
  for number in (outcome.stderr:match "ok ([%d ]+)\n$" or ""):gmatch "%d+" do
    numbers[#numbers + 1] = math.tointeger(tonumber(number))
  end
  if #numbers == 5 and outcome.exit_code == 0 then
    return { files = numbers[1], dirs = numbers[2], links = numbers[3], bytes = numbers[4], skipped = numbers[5] }
  end
  local code, text = outcome.stderr:match "^(%l+) ([^\n]*)"
  return nil, err.new(code or "io", text or ("the process that copies ended with %s")
    :format(outcome.signal or outcome.exit_code))
end

return M

--- The SQLite index of a run, `run.db`: one row per line of its segments, where it is and how it ended.
---
--- It is made of the segments and may be deleted at any time; nothing is known from it alone. Only the process that
--- holds the run's lock writes it.
local fs = require "agentbox.sys.fs"
local sqlite = require "agentbox.sys.sqlite"

local M = {}

local VERSION = 2
local COLUMNS = {
  "segment", "offset", "bytes", "slot", "id", "attempt", "grp", "group_size", "task", "status", "final_status", "stop",
  "class", "scored", "reward", "version_min", "version_max", "started", "finished",
}
local LIST = table.concat(COLUMNS, ",")
local PAGE = 1000

local SCHEMA = [[
BEGIN;
CREATE TABLE IF NOT EXISTS rollout(
  segment INTEGER NOT NULL, offset INTEGER NOT NULL, bytes INTEGER NOT NULL,
  slot TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL, grp TEXT, group_size INTEGER, task TEXT,
  status TEXT, final_status TEXT, stop TEXT, class TEXT, scored INTEGER NOT NULL, reward REAL,
  version_min INTEGER, version_max INTEGER, started REAL, finished REAL,
  PRIMARY KEY(segment, offset)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS rollout_id ON rollout(id);
PRAGMA user_version = 2;
COMMIT;
]]
local INSERT = ("INSERT OR REPLACE INTO rollout(%s) VALUES(%s)"):format(LIST, ("?"):rep(#COLUMNS, ","))

---@class agentbox.Index
local Index = {}
Index.__index = Index

local function path_of(run_dir)
  return run_dir .. "/run.db"
end

local function version_of(db)
  local found, problem = db:query "PRAGMA user_version"
  return found and found[1][1], problem
end

local function open_file(path, write)
  local db, problem = sqlite.open(path, { write = write })
  if not db then return nil, problem end
  local version
  version, problem = version_of(db)
  if version == 0 and write then
    local ok
    ok, problem = db:exec(SCHEMA)
    version = ok and VERSION
  end
  if version == VERSION then return db end
  db:close()
  return nil, problem or { code = "parse", msg = path .. " is of another version" }
end

--- Opens the index of a run; to write, it is made when it is not there, and made anew when it is damaged or of
--- another version.
---
--- Returns nil, err if there can be none: `unsupported` (no SQLite, or a network file system), `denied`, `full`; to
--- read also `notfound`, `parse`.
---@async
---@nodiscard
---@param run_dir string
---@param write boolean
---@return agentbox.Index?
---@return agentbox.Err? err
function M.open(run_dir, write)
  local path = path_of(run_dir)
  local db, problem = open_file(path, write)
  if not db and write and problem.code == "parse" then
    for _, suffix in ipairs { "", "-wal", "-shm", "-journal" } do
      if fs.stat(path .. suffix) then fs.remove(path .. suffix) end
    end
    db, problem = open_file(path, write)
  end
  if not db then return nil, problem end
  return setmetatable({ _db = db }, Index)
end

--- Whether a run has an index.
---@param run_dir string
---@return boolean
function M.exists(run_dir)
  return fs.stat(path_of(run_dir)) ~= nil
end

--- Adds rows, all or none; a row that is there is replaced.
---@async
---@nodiscard
---@param rows agentbox.Summary[]
---@return boolean? ok
---@return agentbox.Err? err
function Index:add(rows)
  local values = {}
  for i, row in ipairs(rows) do
    local list = {}
    for k, name in ipairs(COLUMNS) do list[k] = row[name] end
    values[i] = list
  end
  return self._db:write(INSERT, #COLUMNS, values)
end

--- Drops the rows of a segment that reach past its end.
---@async
---@nodiscard
---@param segment integer
---@param bytes integer
---@return boolean? ok
---@return agentbox.Err? err
function Index:cut(segment, bytes)
  return self._db:write("DELETE FROM rollout WHERE segment = ? AND offset + bytes > ?", 2, { { segment, bytes } })
end

local function row_of(values)
  local row = {}
  for k, name in ipairs(COLUMNS) do row[name] = values[k] end
  row.scored = row.scored == 1
  return row
end

local function rows_of(self, sql, ...)
  local found, problem = self._db:query(sql, select("#", ...), { ... })
  if not found then return nil, problem end
  for i, values in ipairs(found) do found[i] = row_of(values) end
  return found
end

--- A page of a segment's rows, from an offset on; an empty one is the end.
---@async
---@nodiscard
---@param segment integer
---@param from integer
---@return agentbox.Summary[]?
---@return agentbox.Err? err
function Index:page(segment, from)
  local sql = ("SELECT %s FROM rollout WHERE segment = ? AND offset >= ? ORDER BY offset LIMIT %d"):format(LIST, PAGE)
  return rows_of(self, sql, segment, from)
end

--- Where the last row of a segment ends, and the bytes that all its rows have; 0 when it has none.
---@async
---@nodiscard
---@param segment integer
---@return integer? reach
---@return integer|agentbox.Err bytes
function Index:reach(segment)
  local sql = "SELECT max(offset + bytes), sum(bytes) FROM rollout WHERE segment = ?"
  local found, problem = self._db:query(sql, 1, { segment })
  if not found then return nil, problem end
  return found[1][1] or 0, found[1][2] or 0
end

--- The rows whose id begins with a text, at most 1000, in the order of ids.
---@async
---@nodiscard
---@param prefix string
---@return agentbox.Summary[]?
---@return agentbox.Err? err
function Index:find(prefix)
  local sql = "SELECT %s FROM rollout WHERE id >= ? AND substr(id, 1, ?) = ? ORDER BY id LIMIT %d"
  return rows_of(self, sql:format(LIST, PAGE), prefix, utf8.len(prefix) or #prefix, prefix)
end

--- May be called twice.
---@async
function Index:close()
  if self._db then self._db:close() end
  self._db = nil
end

return M

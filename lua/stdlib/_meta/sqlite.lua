---@meta

---@class agentbox.sys.sqlite
local sqlite = {}

--- Opens a database in WAL mode. Only the one process that may write it asks for `write`.
---@async
---@param path string
---@param opts? { write?: boolean }
---@return agentbox.Sqlite?
---@return agentbox.Err? err   # unsupported (no SQLite; a network file system), notfound, denied, parse, full
function sqlite.open(path, opts) end

---@class agentbox.Sqlite
local Sqlite = {}

--- Statements without values.
---@async
---@param sql string
---@return boolean? ok
---@return agentbox.Err? err
function Sqlite:exec(sql) end

--- A statement once for each row, all or none.
---@async
---@param sql string
---@param columns integer
---@param rows any[][]     # nil is NULL
---@return boolean? ok
---@return agentbox.Err? err
function Sqlite:write(sql, columns, rows) end

---@async
---@param sql string
---@param columns? integer
---@param row? any[]
---@return any[][]? rows   # at most 64 MiB of text
---@return agentbox.Err? err   # toobig
function Sqlite:query(sql, columns, row) end

--- May be called twice.
---@async
function Sqlite:close() end

return sqlite

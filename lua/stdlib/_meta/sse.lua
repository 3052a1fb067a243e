---@meta agentbox.sys.sse
--- Private: framing of server-sent events, for `agentbox.http`.

local M = {}

---@class agentbox.sys.SseEvent
---@field event string            # "message" unless the server named it
---@field data string
---@field id? string
---@field retry_ms? integer

---@class agentbox.sys.SseParser
local Parser = {}

--- The events that these bytes complete; the chunk may be cut anywhere.
---@param bytes string
---@return agentbox.sys.SseEvent[]? events
---@return agentbox.Err? err      # toobig: the stream is lost
function Parser:feed(bytes) end

--- At the end of the stream: the event whose closing empty line is missing, if there is one.
---@return agentbox.sys.SseEvent[] events
---@return boolean cut            # the stream ended inside a line, which is dropped
function Parser:finish() end

---@param opts? { max_bytes?: integer }   # of one line, and of the data of one event; 16 MiB
---@return agentbox.sys.SseParser
function M.parser(opts) end

return M

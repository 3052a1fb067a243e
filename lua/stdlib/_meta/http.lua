---@meta agentbox.sys.http
--- Private. The transfers below `agentbox.http`; all waiting is done by the calling fiber alone.

local M = {}

---@class agentbox.sys.HttpSpec
---@field method? string                 # default "GET"
---@field url string                     # http or https
---@field headers? string[]              # "Name: value"
---@field body? string
---@field connect_timeout_s? number      # name, connection, TLS. Without a deadline each of these waits for ever
---@field first_byte_timeout_s? number
---@field idle_timeout_s? number         # silence inside the response
---@field timeout_s? number              # everything after the queue
---@field max_body_bytes? integer        # 0 or nil: no cap
---@field unix_socket? string
---@field proxy? string
---@field ca_file? string
---@field ca_pem? string
---@field cert_pem? string
---@field key_pem? string
---@field insecure? boolean
---@field keep_alive? boolean           # default true
---@field host_limit? integer
---@field max_redirects? integer         # 0 or nil: a redirect is the response

---@class agentbox.sys.HttpHead
---@field status integer
---@field headers [string, string][]
---@field url string
---@field ip string
---@field timing table<string, number>

---@class agentbox.sys.HttpStream
local Stream = {}

--- The next bytes of the body; nil at the end; nil, err when cut off. Cancelling the fiber aborts the transfer.
---
--- Raises when the stream is closed or another fiber reads it.
---@async
---@return string? bytes
---@return agentbox.Err? err
function Stream:read() end

--- Aborts what still runs. May be called twice.
function Stream:close() end

--- One request, the whole response. Cancelling the fiber aborts the transfer.
---
--- Returns nil, err: `network`, `timeout`, `toobig`, `protocol`, `badarg` (the spec), `unsupported` (no libcurl);
--- `err.phase` is queue, resolve, connect, tls, send or receive, `err.queue_s` the time in the queue.
---@async
---@param spec agentbox.sys.HttpSpec
---@return (agentbox.sys.HttpHead | { body: string })? response
---@return agentbox.Err? err
function M.request(spec) end

--- One request; returns when the headers are in.
---@async
---@param spec agentbox.sys.HttpSpec
---@return agentbox.sys.HttpStream? stream
---@return agentbox.sys.HttpHead|agentbox.Err head_or_err
function M.open(spec) end

---@class agentbox.sys.HttpConnection
local Connection = {}

--- What came; nil at the end of the stream. One fiber at a time.
---@async
---@return string? bytes
---@return agentbox.Err? err
function Connection:recv() end

--- Never waits: how many bytes were taken, from position `from` on.
---@param bytes string
---@param from? integer
---@return integer? taken
---@return agentbox.Err? err
function Connection:send(bytes, from) end

---@async
---@return true? ok
---@return agentbox.Err? err
function Connection:wait_writable() end

--- May be called twice; whoever waits is told.
function Connection:close() end

--- Only connects, with TLS for https, and gives the connection: for what begins as HTTP and goes on otherwise.
---@async
---@param spec agentbox.sys.HttpSpec
---@return agentbox.sys.HttpConnection? connection
---@return agentbox.Err? err
function M.connect(spec) end

--- Seconds since 1970 of an HTTP date.
---@param text string
---@return integer?
function M.date(text) end

--- Closes the connections that are kept for requests to come; nothing while there are requests.
function M.forget() end

return M

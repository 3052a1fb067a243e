--- read_file: a whole file as text.
local access = require "agentbox.tool.access"
local jail = require "agentbox.jail"
local path_text = require "agentbox.tool.path_text"
local text = require "agentbox.text"

local MAX_CODE_POINTS = 200000
-- Four bytes a code point at most; what lies beyond can't be shown and is not fetched.
local MAX_BYTES = 4 * MAX_CODE_POINTS

return require("agentbox.tool").define {
  api = 1,
  name = "read_file",
  description = "Read a text file from the workspace.",
  parameters = { { "path", "string", "File to read, relative to the workspace." } },
  run = function(ctx, args)
    local path, reason = jail.resolve(args.path, ctx.workspace)
    if not path then return nil, reason end
    local allowed, refusal = access.check(ctx, path, "read")
    if not allowed then return nil, path_text.problem(refusal, args.path, "file") end
    local st, problem = ctx.sandbox:stat(path)
    if not st then return nil, path_text.problem(problem, args.path, "file") end
    if st.type ~= "file" then return nil, path_text.not_a_file(st.type, args.path) end
    local bytes
    bytes, problem = ctx.sandbox:read(path, { max_bytes = MAX_BYTES, truncate = true })
    if not bytes then return nil, path_text.problem(problem, args.path, "file") end
    local said = text.scrub(bytes)
    local cut = utf8.len(said) - MAX_CODE_POINTS + math.max(0, st.size - #bytes)
    if cut <= 0 then return said end
    local shown = said:sub(1, (utf8.offset(said, MAX_CODE_POINTS + 1) or #said + 1) - 1)
    return ("%s\n\n...[truncated %d chars]"):format(shown, cut), { cut = cut }
  end,
}

--- write_file: creates or overwrites a file; parent folders are made.
local access = require "agentbox.tool.access"
local jail = require "agentbox.jail"
local path_text = require "agentbox.tool.path_text"

return require("agentbox.tool").define {
  api = 1,
  name = "write_file",
  description = "Create a file in the workspace, or replace what it holds.",
  parameters = { { "path", "string" }, { "content", "string" } },
  run = function(ctx, args)
    local path, reason = jail.resolve(args.path, ctx.workspace)
    if not path then return nil, reason end
    local allowed, refusal = access.check(ctx, path, "write")
    if not allowed then return nil, path_text.problem(refusal, args.path, "file") end
    local ok, problem = ctx.sandbox:write(path, args.content)
    if not ok then return nil, path_text.problem(problem, args.path, "file") end
    return ("Wrote %d chars to %s"):format(utf8.len(args.content) or #args.content, args.path)
  end,
}

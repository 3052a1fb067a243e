--- list_files: what a workspace folder holds.
local access = require "agentbox.tool.access"
local jail = require "agentbox.jail"
local path_text = require "agentbox.tool.path_text"

--- A line break in a name must not read as two files.
local function one_line(name)
  return (name:gsub("[\n\r]", { ["\n"] = "\\n", ["\r"] = "\\r" }))
end

return require("agentbox.tool").define {
  api = 1,
  name = "list_files",
  description = "List the files of a folder in the workspace.",
  parameters = {
    { "path", "string", "Folder to list, relative to the workspace.", default = "." },
    { "recursive", "boolean", "Also list what lies in its subfolders.", default = false },
  },
  run = function(ctx, args)
    local path, reason = jail.resolve(args.path, ctx.workspace)
    if not path then return nil, reason end
    local allowed, refusal = access.check(ctx, path, "read")
    if not allowed then return nil, path_text.problem(refusal, args.path, "folder") end
    local entries, problem = ctx.sandbox:list(path, { recursive = args.recursive })
    if not entries then return nil, path_text.problem(problem, args.path, "folder") end
    local lines = {}
    for i, entry in ipairs(entries) do lines[i] = one_line(entry.name) end
    table.sort(lines)
    if #lines == 0 then return "(empty)" end
    return table.concat(lines, "\n")
  end,
}

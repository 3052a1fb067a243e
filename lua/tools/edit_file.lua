--- edit_file: replaces the one place where a text occurs.
local access = require "agentbox.tool.access"
local jail = require "agentbox.jail"
local path_text = require "agentbox.tool.path_text"

local MAX_BYTES = 16 << 20

local function count(haystack, needle)
  local n, at = 0, 1
  while true do
    local from, to = haystack:find(needle, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end

--- An empty old text occurs between all characters; it means something only in an empty file.
local function replaced(bytes, args)
  local shown = path_text.quote(args.path)
  local n = args.old_string == "" and (utf8.len(bytes) or #bytes) + 1 or count(bytes, args.old_string)
  if n == 0 then return nil, ("old_string matched 0 times in %s"):format(shown) end
  if n > 1 then return nil, ("old_string matched %d times in %s; must match exactly once"):format(n, shown) end
  local from, to = bytes:find(args.old_string, 1, true)
  return bytes:sub(1, from - 1) .. args.new_string .. bytes:sub(to + 1)
end

return require("agentbox.tool").define {
  api = 1,
  name = "edit_file",
  description = "Replace one piece of text in a file. old_string must occur exactly once.",
  parameters = { { "path", "string" }, { "old_string", "string" }, { "new_string", "string" } },
  run = function(ctx, args)
    local path, reason = jail.resolve(args.path, ctx.workspace)
    if not path then return nil, reason end
    local allowed, refusal = access.check(ctx, path, "write")
    if not allowed then return nil, path_text.problem(refusal, args.path, "file") end
    local st, problem = ctx.sandbox:stat(path)
    if not st then return nil, path_text.problem(problem, args.path, "file") end
    if st.type ~= "file" then return nil, path_text.not_a_file(st.type, args.path) end
    local bytes
    bytes, problem = ctx.sandbox:read(path, { max_bytes = MAX_BYTES })
    if not bytes then return nil, path_text.problem(problem, args.path, "file") end
    if not utf8.len(bytes) or bytes:find("\0", 1, true) then
      return nil, ("%s is not a text file"):format(path_text.quote(args.path))
    end
    local new
    new, reason = replaced(bytes, args)
    if not new then return nil, reason end
    local ok
    ok, problem = ctx.sandbox:write(path, new)
    if not ok then return nil, path_text.problem(problem, args.path, "file") end
    return "Edited " .. args.path
  end,
}

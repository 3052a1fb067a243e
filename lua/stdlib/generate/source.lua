--- generate/source.lua: what the sandboxed interpreter knows of a candidate's Python files.
local M = {}

--- Reads the Python files among some texts; other languages' are not looked at.
---@async
---@param ctx agentbox.GenerateCtx
---@param ... table<string, string>      # texts by path; later ones win
---@return table<string, table>? read
---@return string|agentbox.Err|nil problem   # a text: the source is to blame
function M.read(ctx, ...)
  local files = {}
  for _, tree in ipairs { ... } do
    for path, text in pairs(tree) do
      if path:find "%.py$" then files[path] = text end
    end
  end
  if not next(files) then return {} end
  local answer, problem = ctx.workshop:ask("read", files)
  if answer then return answer.files end
  if problem.code == "parse" then return nil, problem.msg end
  return nil, problem
end

--- The first file of a tree that does not parse, with the reason.
---@param read table<string, table>
---@param tree table<string, string>
---@return string?
function M.broken(read, tree)
  for path in pairs(tree) do
    if read[path] and read[path].error then return ("%s: %s"):format(path, read[path].error) end
  end
end

return M

--- Sets members of an ordered object in the order in which they are written; an assignment of several at once has none.
---@param out table
---@param ... any    # name, value, name, value; nil sets nothing
---@return table out
return function(out, ...)
  local list = table.pack(...)
  for i = 1, list.n, 2 do
    local value = list[i + 1]
    if value ~= nil then out[list[i]] = value end
  end
  return out
end

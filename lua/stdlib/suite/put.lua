--- Sets members of an ordered object in the order in which they are written; an assignment of several at once has none.
---@param out table
---@param ... any    # name, value, name, value; nil sets nothing
---@return table out
return function(out, ...)
  for i = 1, select("#", ...), 2 do
    local name, value = select(i, ...)
    if value ~= nil then out[name] = value end
  end
  return out
end

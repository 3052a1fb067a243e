--- Routes: "METHOD /path/:name/*rest" to a handler. GET answers HEAD too. The more literal route wins.
local request = require "agentbox.http_server.request"

local M = {}

local function compile(pattern, handler)
  local method, path = pattern:match "^(%u+) (/.*)$"
  if not method then error(('http.serve: route "%s": "METHOD /path" expected'):format(pattern), 4) end
  local parts, weight = {}, 0
  for part in (path:sub(2) .. "/"):gmatch "([^/]*)/" do
    local last = parts[#parts]
    if last and last.rest then error(('http.serve: route "%s": nothing may follow *'):format(pattern), 4) end
    local kind, name = part:match "^([:*])([%a_][%w_]*)$"
    parts[#parts + 1] = { literal = not kind and part or nil, name = name, rest = kind == "*" }
    weight = weight * 3 + (not kind and 2 or kind == ":" and 1 or 0)
  end
  return { method = method, parts = parts, handler = handler, weight = weight, pattern = pattern }
end

-- Segments are cut before they are decoded: an encoded slash separates nothing.
local function segments_of(path)
  local list = {}
  for part in (path:sub(2) .. "/"):gmatch "([^/]*)/" do
    local text = request.percent(part)
    if not text then return nil end
    list[#list + 1] = text
  end
  return list
end

local function match(parts, segments)
  local params = {}
  for i, part in ipairs(parts) do
    if part.rest then
      params[part.name] = table.concat(segments, "/", i)
      return params
    end
    local text = segments[i]
    if not text or (part.literal and part.literal ~= text) then return nil end
    if part.name then
      if text == "" then return nil end
      params[part.name] = text
    end
  end
  return #segments == #parts and params or nil
end

local function find(list, method, segments)
  local allowed, seen = {}, {}
  for _, route in ipairs(list) do
    local params = match(route.parts, segments)
    if params then
      if route.method == method or (method == "HEAD" and route.method == "GET") then return route, params end
      if not seen[route.method] then allowed[#allowed + 1] = route.method end
      seen[route.method] = true
    end
  end
  return nil, allowed
end

--- One handler for all of them.
---@param map table<string, function>
---@return fun(req: agentbox.ServerRequest): any, any
function M.new(map)
  local list, exact = {}, {}
  for pattern, handler in pairs(map) do
    if type(pattern) ~= "string" or type(handler) ~= "function" then
      error("http.serve: option 'routes': a map of \"METHOD /path\" to functions expected", 3)
    end
    list[#list + 1] = compile(pattern, handler)
    if not pattern:find "[:*%%]" then exact[pattern] = handler end
  end
  table.sort(list, function(a, b)
    if a.weight ~= b.weight then return a.weight > b.weight end
    return a.pattern < b.pattern
  end)
  return function(req)
    local handler = exact[req.method .. " " .. req.path]
    if handler then return handler(req) end
    local segments = segments_of(req.path)
    if not segments then return request.problem(400, "badarg", "the path is not well encoded") end
    local route, params = find(list, req.method, segments)
    if route then
      req.params = params
      return route.handler(req)
    end
    if #params == 0 then return request.problem(404, "notfound", "there is nothing here") end
    local answer = request.problem(405, "badarg", "not with this method")
    answer.headers = { Allow = table.concat(params, ", ") }
    return answer
  end
end

return M

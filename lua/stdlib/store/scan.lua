--- The fast way to look at many records: every line of a file, without what of it may stay text.
local frame = require "agentbox.store.frame"
local json = require "agentbox.json"
local lines = require "agentbox.store.lines"
local read = require "agentbox.store.read"

--- Calls fn with the record of every line. Returns nil, err (`parse`, `io`) when one is damaged.
---@async
---@param path string
---@param unread { raw: string[] }   # members that stay text, as for json.decode
---@param fn fun(line: table)
---@return true?
---@return agentbox.Err? err
return function(path, unread, fn)
  local file <close>, problem = lines.open(path)
  if not file then return nil, problem end
  for text in file.next, file do
    local object = frame.read(text)
    local line = object and json.decode(object, unread)
    if not json.is_object(line) or type(line.stop) ~= "table" or type(line.reward) ~= "table" then
      local t, damage = read.line(text, path)
      if not t then return nil, damage end
      line = t.line
    end
    fn(line)
  end
  return true
end

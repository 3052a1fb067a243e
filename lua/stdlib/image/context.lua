--- image/context.lua: the files that COPY takes: paths below the context, patterns, .dockerignore.
local err = require "agentbox.err"
local fs = require "agentbox.sys.fs"
local glob = require "agentbox.glob"
local path = require "agentbox.path"

local M = {}

local MAX_FILES = 200000

---@class agentbox.image.Context
---@field dir string
---@field private _rules { neg: boolean, match: fun(path: string): boolean }[]
local Context = {}
Context.__index = Context

local function rules_of(dir)
  local text, rules = fs.read(dir .. "/.dockerignore", 1 << 20) or "", {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    local neg, pattern = line:match "^%s*(!?)%s*(.-)%s*$"
    pattern = pattern:gsub("^/+", ""):gsub("/+$", "")
    if pattern ~= "" and not line:find "^%s*#" then
      rules[#rules + 1] = { neg = neg == "!", match = glob.compile { "/" .. pattern } }
    end
  end
  return rules
end

---@param dir string
---@return agentbox.image.Context?
---@return agentbox.Err?
function M.open(dir)
  local stat, problem = fs.stat(dir)
  if not stat then return nil, problem end
  if stat.type ~= "dir" then return nil, err.new("badarg", dir .. " is no folder") end
  return setmetatable({ dir = path.abs(dir), _rules = rules_of(dir) }, Context)
end

-- The last rule that matches the file, or a folder above it, decides.
function Context:_ignored(file)
  local ignored = false
  for _, rule in ipairs(self._rules) do
    local at = file
    while at do
      if rule.match(at) then
        ignored = not rule.neg
        break
      end
      at = at:match "^(.*)/[^/]*$"
    end
  end
  return ignored
end

-- Everything below a folder, folders first; `under` is its path below the context, "" for the context itself.
function Context:_walk(under, list, to)
  local entries, problem = fs.list(self.dir .. "/" .. under)
  if not entries then return nil, problem end
  for _, entry in ipairs(entries) do
    local file = under == "" and entry.name or under .. "/" .. entry.name
    local target = to == "" and entry.name or to .. "/" .. entry.name
    local is_dir = entry.type == "dir"
    if not self:_ignored(file) then
      list[#list + 1] = { from = self.dir .. "/" .. file, to = target }
      if #list > MAX_FILES then
        return nil, err.new("toobig", ("the context has more than %d files"):format(MAX_FILES))
      end
      if is_dir then
        local ok, bad = self:_walk(file, list, target)
        if not ok then return nil, bad end
      end
    elseif is_dir then -- a later rule may take some of it back
      local ok, bad = self:_walk(file, list, target)
      if not ok then return nil, bad end
    end
  end
  return true
end

-- The paths that a source means: itself, or what its pattern matches.
function Context:_match(source)
  local clean = path.clean(source:gsub("^/+", ""))
  if clean == "." then return { "" } end
  if clean:find "^%.%." then return nil, err.new("denied", source .. " leaves the context") end
  if not clean:find "[*?%[]" then
    if self:_ignored(clean) then return {} end
    return fs.lstat(self.dir .. "/" .. clean) and { clean } or {}
  end
  local parent, last = clean:match "^(.*)/([^/]*)$"
  if (parent or ""):find "[*?%[]" then
    return nil, err.new("unsupported", source .. ": patterns are for the last part of a path")
  end
  local found, matches = {}, glob.compile { "/" .. (last or clean) }
  for _, entry in ipairs(fs.list(self.dir .. "/" .. (parent or "")) or {}) do
    local file = parent and parent .. "/" .. entry.name or entry.name
    if matches(entry.name) and not self:_ignored(file) then found[#found + 1] = file end
  end
  return found
end

---The files of a COPY, as pairs of where they are and where they go. `into` is the destination without slashes around
---it; with `is_dir` it is a folder, else the one file's new name.
---@async
---@param sources string[]
---@param into string
---@param is_dir boolean
---@return { from: string, to: string }[]?
---@return agentbox.Err?
function Context:files(sources, into, is_dir)
  local list = {}
  for _, source in ipairs(sources) do
    local found, problem = self:_match(source)
    if not found then return nil, problem end
    if #found == 0 then return nil, err.new("notfound", "nothing in the context is called " .. source) end
    for _, file in ipairs(found) do
      local stat = fs.lstat(self.dir .. "/" .. file)
      if stat and stat.type == "dir" then -- its contents, not itself
        local ok, bad = self:_walk(file, list, into)
        if not ok then return nil, bad end
      else
        local to = into
        if is_dir then to = (into == "" and "" or into .. "/") .. file:match "[^/]*$" end
        list[#list + 1] = { from = self.dir .. "/" .. file, to = to }
      end
    end
  end
  return list
end

return M

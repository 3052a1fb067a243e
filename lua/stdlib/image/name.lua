--- image/name.lua: what an image is called. `python:3.12` is docker.io/library/python:3.12, as everywhere.
local err = require "agentbox.err"

local M = {}

--- Short names that mean the same on every backend.
---@type table<string, string>
M.presets = {
  python = "python:3.12-slim-bookworm",
  node = "node:22-bookworm-slim",
  go = "golang:1.23-bookworm",
}

---@class agentbox.image.Name
---@field registry string      # "docker.io", "127.0.0.1:5000"
---@field repository string    # "library/python"
---@field tag? string
---@field digest? string       # "sha256:..."

local HUB = "docker.io"

local function bad(text, why)
  return nil, err.new("badarg", ("not the name of an image: '%s' (%s)"):format(text, why),
    { hint = "names look like python:3.12, registry.example:5000/team/name:tag or name@sha256:..." })
end

local function is_repository(text)
  for part in (text .. "/"):gmatch "([^/]*)/" do
    if not part:find "^[%l%d]" or not part:find "[%l%d]$" or part:find "[^%l%d._-]" then return false end
  end
  return #text <= 255
end

---@param text string
---@return boolean
function M.is_digest(text)
  return #text == 71 and text:find "^sha256:%x+$" ~= nil and not text:find "%u"
end

---Takes a name apart. A preset's is that of its image.
---@param text string
---@return agentbox.image.Name?
---@return agentbox.Err?
function M.parse(text)
  local rest, digest = (M.presets[text] or text):match "^([^@]*)@?(.*)$"
  if digest == "" then digest = nil end
  if digest and not M.is_digest(digest) then return bad(text, "the digest must be sha256: and 64 digits") end
  local first, tail = rest:match "^([^/]+)/(.+)$"
  local registry = HUB
  if first and (first:find "[.:]" or first == "localhost") then
    registry, rest = first, tail
    if not registry:find "^%[?[%w:][%w.:-]*%]?[%d:]*$" then return bad(text, "the registry") end
  end
  local repository, tag = rest:match "^(.-):([^:/]*)$"
  repository = repository or rest
  if tag and (not tag:find "^[%w_][%w_.-]*$" or #tag > 128) then return bad(text, "the tag") end
  if not is_repository(repository) then return bad(text, "lower-case letters, digits and . _ - between slashes") end
  if registry == HUB and not repository:find "/" then repository = "library/" .. repository end
  if registry == "index.docker.io" then registry = HUB end
  if not tag and not digest then tag = "latest" end
  return { registry = registry, repository = repository, tag = tag, digest = digest }
end

---The name as a person writes it.
---@param name agentbox.image.Name
---@return string
function M.text(name)
  local repository = name.repository
  if name.registry ~= HUB then
    repository = name.registry .. "/" .. repository
  else
    repository = repository:gsub("^library/([^/]+)$", "%1")
  end
  return repository .. (name.tag and ":" .. name.tag or "") .. (name.digest and "@" .. name.digest or "")
end

return M

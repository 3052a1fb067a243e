--- What a sandbox may reach: "none", "full", or a list of names and addresses with ports.
local schema = require "agentbox.schema"
local sys = require "agentbox.sys.sandbox"

local M = {}

local FIELDS = {
  allow = { "list", of = { "text" }, required = true }, hosts = { "map", of = { "text" } },
  max_connections = { "integer", min = 1, max = 1024 }, max_mb = { "number", min = 0.001, max = 1 << 30 },
  idle_timeout_s = { "number", min = 1, max = 86400 },
}

---@class agentbox.NetworkList
---@field allow string[]                  # "example.org:443", "*.example.org:80,443", "10.1.2.3:8080", "10.0.0.0/8:5432", "[fd00::1]:443"
---@field hosts? table<string, string>    # what a name's address is, without asking anybody; trusted, private ones too
---@field max_connections? integer        # at once; 64
---@field max_mb? number                  # in all, both ways; 16384
---@field idle_timeout_s? number          # of a connection on which nothing moves; 300

---What is asked for, checked.
---@param value "none"|"full"|agentbox.NetworkList
---@return "none"|"full"|agentbox.NetworkList? clean
---@return string? problem
function M.check(value)
  if value == "none" or value == "full" then return value end
  if type(value) == "string" then
    return nil, "network: must be none, full or a list of what to allow, not " .. schema.word(value)
  end
  local clean, wrong = schema.check(value, FIELDS, { path = "network" })
  if not clean then return nil, wrong.msg end
  local fine, problem = sys.check_allow { rules = clean.allow, hosts = clean.hosts }
  if not fine then return nil, "network.allow: " .. problem.msg end
  return clean
end

---The same as the options of agentbox.sys.sandbox; nil for what is no list.
---@param network any
---@return table?
function M.raw(network)
  if type(network) ~= "table" then return nil end
  return {
    rules = network.allow, hosts = network.hosts, max_connections = network.max_connections, max_mb = network.max_mb,
    idle_timeout_s = network.idle_timeout_s,
  }
end

return M

--- The HTML around a page's data: the same style and script for all of them, and a content security policy that
--- lets nothing else run. Data stand in script elements of type application/json, which no browser executes, with
--- `<` escaped; the script makes text nodes of them and nothing else.
local base64 = require "agentbox.image.credentials".base64
local json = require "agentbox.json"
local loader = require "agentbox.loader"
local sys_hash = require "agentbox.sys.hash"

local M = {}

-- In the order in which they need one another.
local SCRIPTS = {
  "text", "format", "store", "plot", "table", "overview", "turns", "panels", "threads", "trajectory", "bench",
  "live", "app",
}

local parts

local function digest(text)
  local bytes = sys_hash.sha256(text):gsub("%x%x", function(hex) return string.char(tonumber(hex, 16)) end)
  return "'sha256-" .. base64(bytes) .. "'"
end

local function load_parts()
  if parts then return parts end
  local list = {}
  for i, name in ipairs(SCRIPTS) do list[i] = assert(loader.asset("pages/" .. name .. ".js")) end
  local script = "(() => {\n\"use strict\";\n" .. table.concat(list, "\n") .. "})();\n"
  local style = assert(loader.asset "pages/page.css")
  parts = {
    script = script, style = style, frame = assert(loader.asset "pages/page.html"), script_hash = digest(script),
    style_hash = digest(style),
  }
  return parts
end

--- The policy of a page. Only a served one may ask, and only the server that it came from.
---@param served boolean
---@return string
function M.policy(served)
  local own = load_parts()
  return ("default-src 'none'; script-src %s; style-src %s; %simg-src data:; base-uri 'none'; form-action 'none'")
    :format(own.script_hash, own.style_hash, served and "connect-src 'self'; " or "")
end

--- JSON text as it may stand in a script element.
---@param text string
---@return string
function M.escape(text)
  return (text:gsub("<", "\\u003c"))
end

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

local function attribute(text)
  return (text:gsub("[&<>\"']", ENTITIES))
end

--- A data element.
---@param id string
---@param text string   # JSON
---@return string
function M.data(id, text)
  return ('<script type="application/json" id="%s">%s</script>\n'):format(id, M.escape(text))
end

--- The pieces of a page: what comes before the bodies, and what comes after them.
---@param opts { title: string, page: table, columns?: string, served?: boolean }
---@return string head
---@return string foot
function M.frame(opts)
  local own, served = load_parts(), opts.served == true
  local data = M.data("page", json.encode(opts.page)) .. (opts.columns and M.data("rows", opts.columns) or "")
  local fill = {
    title = attribute(opts.title), policy = M.policy(served), style = own.style, script = own.script, data = data,
  }
  local html = own.frame:gsub("{{(%w+)}}", fill)
  local at = assert(html:find("<!-- bodies -->\n", 1, true))
  return html:sub(1, at - 1), (html:sub(at + #"<!-- bodies -->\n"))
end

return M

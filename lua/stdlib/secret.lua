--- Secrets: values that are replaced by *** wherever they could appear (logs, records, pages, errors).
---
---     local key = ab.secret "API_KEY"      -- the environment variable; raises when it is not set
---
--- A secret prints as ***. `reveal` gives the text to the one place that sends it. `redact` removes every
--- registered secret from a text, also as JSON and percent-encoding would write it.
local M = {}

---@class agentbox.Secret
local Secret = {}
Secret.__index = Secret
Secret.__name = "agentbox.Secret"
Secret.__tostring = function() return "***" end
Secret.__concat = function(a, b) return tostring(a) .. tostring(b) end

-- The text is not in the object: a dump of the object must not show it.
local text_of = setmetatable({}, { __mode = "k" })

-- Shorter values would blank out ordinary words ("none", "EMPTY").
local MIN_LENGTH = 6

-- Every spelling that is looked for, longest first, so that one that contains another goes first.
local spellings = {}

local function json_form(text)
  return (text:gsub('[%c"\\/]', function(c)
    if c == '"' or c == "\\" or c == "/" then return "\\" .. c end
    return ("\\u%04x"):format(c:byte())
  end))
end

local function url_form(text)
  return (text:gsub("[^%w%-%._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function add(text)
  if spellings[text] then return end
  spellings[text] = true
  spellings[#spellings + 1] = text
  table.sort(spellings, function(a, b) return #a > #b end)
end

---From now on the text is redacted. Texts of less than six bytes are not: they would blank out ordinary words.
---@param text string
function M.register(text)
  if #text < MIN_LENGTH then return end
  add(text)
  add(json_form(text))
  add((json_form(text):gsub("\\/", "/")))
  -- Arguments of a tool call are JSON inside JSON.
  add((json_form((json_form(text):gsub("\\/", "/"))):gsub("\\/", "/")))
  add(url_form(text))
end

---Makes a secret of a text and registers it.
---@param text string
---@return agentbox.Secret
function M.new(text)
  if type(text) ~= "string" then error("string expected, got " .. type(text), 2) end
  M.register(text)
  local secret = setmetatable({}, Secret)
  text_of[secret] = text
  return secret
end

---The secret in an environment variable.
---@param name string
---@return agentbox.Secret
function M.env(name)
  local text = require "agentbox.sys.os".env(name)
  if not text or text == "" then error(("the environment variable %s is not set"):format(name), 2) end
  return M.new(text)
end

---@param value any
---@return boolean
function M.is(value)
  return getmetatable(value) == Secret
end

---The text of a secret; other values are returned as they are.
---@param value any
---@return any
function M.reveal(value)
  if M.is(value) then return text_of[value] end
  return value
end

local function replace(text, what)
  local from, to = text:find(what, 1, true)
  if not from then return text end
  local out, at = {}, 1
  while from do
    out[#out + 1] = text:sub(at, from - 1)
    at = to + 1
    from, to = text:find(what, at, true)
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out, "***")
end

---The text with *** in place of every registered secret.
---@param text string
---@return string
function M.redact(text)
  for i = 1, #spellings do text = replace(text, spellings[i]) end
  return text
end

return setmetatable(M, { __call = function(_, name) return M.env(name) end })

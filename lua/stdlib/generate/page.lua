--- generate/page.lua: the queue as one HTML file that needs nothing else: no script, no address, one style that its policy names.
---
--- What a model wrote can be text in it and nothing else: it goes through `shown` on every way, and stands in elements only, never in
--- an attribute. Signs that steer a terminal or turn the direction of text are written out.
local hash = require "agentbox.hash"
local json = require "agentbox.json"
local schema = require "agentbox.schema"
local shape = require "agentbox.task.shape"
local text_ = require "agentbox.text"

local M = {}

local MAX_FILE, MAX_FACTS, MAX_FILES = 20000, 8000, 60

local STYLE = [[
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:100em;padding:0 1em;color:#1b1b1b;background:#fff}
h1{font-size:1.4em}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left;vertical-align:top}
details.item{border:1px solid #bbb;border-radius:4px;margin:.6em 0;padding:.3em .8em}summary{cursor:pointer}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f6f4;border:1px solid #e2e2dc;padding:.6em;margin:.2em 0 1em}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:1em}.sides>div{min-width:0}h2,h3{font-size:1em;margin:.8em 0 .2em}
.good{color:#0a6b2d}.bad{color:#a01818}.file{font-weight:600}
@media(max-width:60em){.sides{grid-template-columns:1fr}}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#1a1a1a}pre{background:#242424;border-color:#3a3a3a}.good{color:#6c6}.bad{color:#f77}}
]]

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

-- Marks of direction, joiners and other signs without a width: what is shown would not be what is there.
local HIDDEN = { [0xAD] = true, [0x61C] = true, [0x180E] = true, [0xFEFF] = true }
for code = 0x200B, 0x200F do HIDDEN[code] = true end
for code = 0x2028, 0x202E do HIDDEN[code] = true end
for code = 0x2060, 0x206F do HIDDEN[code] = true end
for code = 0x80, 0x9F do HIDDEN[code] = true end

--- A text as the content of an element.
---@param text any
---@return string
function M.shown(text)
  text = text_.scrub(tostring(text)):gsub("\r\n", "\n"):gsub("[%z\1-\8\11-\31\127]", function(c) return ("\\x%02x"):format(c:byte()) end)
  text = text:gsub(utf8.charpattern, function(char)
    if #char == 1 then return ENTITIES[char] end
    local code = utf8.codepoint(char)
    if HIDDEN[code] or code >= 0xE0000 and code <= 0xE007F then return ("\\u{%x}"):format(code) end
  end)
  return text
end

local shown = M.shown

-- A word for the shell.
local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function pre(out, text, max) out[#out + 1] = "<pre>" .. shown((text_.cut(text_.scrub(text), max))) .. "</pre>\n" end

local function files(out, title, tree, wanted)
  local n = 0
  for _, path in ipairs(schema.names(tree)) do
    if wanted(path) then
      n = n + 1
      if n <= MAX_FILES then
        out[#out + 1] = ("<div class=\"file\">%s: %s</div>\n"):format(title, shown(path))
        pre(out, tree[path].bytes, MAX_FILE)
      end
    end
  end
  if n > MAX_FILES then out[#out + 1] = ("<p>%d more files</p>\n"):format(n - MAX_FILES) end
end

local function sides(out, item, is_test)
  local task = item.task
  local function is_source(path) return not is_test(path) end
  out[#out + 1] = "<div class=\"sides\"><div><h3>Source</h3>\n"
  files(out, "starter", task.files, is_source)
  files(out, "solution", task.solution, function() return true end)
  out[#out + 1] = "</div><div><h3>Tests</h3>\n"
  files(out, "test", task.files, is_test)
  files(out, "hidden", task.hidden, function() return true end)
  out[#out + 1] = "</div></div>\n"
end

-- What each gate found: its facts as they are in the journal.
local function gates(out, item)
  out[#out + 1] = "<h3>Gates</h3><table><tr><th>gate</th><th>result</th><th>facts</th></tr>\n"
  local seen = false
  for _, name in ipairs(schema.names(item.report)) do
    if name ~= "judge" then
      local failed = item.stage == name
      seen = seen or failed
      out[#out + 1] = ("<tr><td>%s</td><td class=\"%s\">%s</td><td>%s</td></tr>\n"):format(shown(name), failed and "bad" or "good",
        failed and shown(item.reason) or "passed", shown((text_.cut(json.encode(item.report[name]), MAX_FACTS))))
    end
  end
  if item.stage and not seen and item.stage ~= "judge" then
    out[#out + 1] = ("<tr><td>%s</td><td class=\"bad\">%s</td><td></td></tr>\n"):format(shown(item.stage), shown(item.reason))
  end
  out[#out + 1] = "</table>\n"
end

local function judge(out, item)
  local found = item.report.judge
  if type(found) ~= "table" then return end
  out[#out + 1] = ("<h3>Judge</h3><p class=\"%s\">score %s, %s of %s votes for it, agreement %s%s</p><ul>\n"):format(
    item.stage == "judge" and "bad" or "good", shown(("%.2f"):format(tonumber(found.score) or 0)), shown(found.yes), shown(found.votes),
    shown(("%.2f"):format(tonumber(found.agreement) or 0)), item.stage == "judge" and ": " .. shown(item.reason) or "")
  for _, list in ipairs { found.reasons or {}, found.fixes or {} } do
    for _, one in ipairs(list) do out[#out + 1] = "<li>" .. shown(one) .. "</li>\n" end
  end
  out[#out + 1] = "</ul>\n"
end

local function state_of(item)
  if item.decision then return item.decision .. "ed by " .. tostring(item.decided.who or "a person") end
  return "undecided"
end

local function one(out, item, n, dir, is_test)
  out[#out + 1] = ("<details class=\"item\" id=\"t%d\"><summary>%s <span class=\"%s\">%s</span>, %s</summary>\n"):format(n,
    shown(item.name == item.task.task_id and item.name or item.name .. " " .. item.task.task_id), item.accepted and "good" or "bad",
    item.accepted and "accepted by the gates" or "rejected by " .. shown(item.stage), shown(state_of(item)))
  if item.decided and item.decided.reason then out[#out + 1] = "<p>" .. shown(item.decided.reason) .. "</p>\n" end
  pre(out, item.task.description, MAX_FILE)
  gates(out, item)
  judge(out, item)
  sides(out, item, is_test)
  local words = quote(dir) .. " " .. quote(item.name)
  out[#out + 1] = ("<pre>agentbox generate review accept %s\nagentbox generate review reject %s --reason '...'</pre></details>\n"):format(
    shown(words), shown(words))
end

--- The page.
---@param items agentbox.ReviewItem[]
---@param opts { dir: string, left_out: integer, is_test: fun(item: agentbox.ReviewItem): fun(path: string): boolean }
---@return string html
function M.html(items, opts)
  local digest = hash.sha256(STYLE):gsub("%x%x", function(two) return string.char(tonumber(two, 16)) end)
  local out = { "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n",
    ("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n")
      :format(shape.to_base64(digest)),
    "<meta name=\"referrer\" content=\"no-referrer\"><meta name=\"viewport\" content=\"width=device-width\">\n",
    "<title>Tasks to review</title><style>", STYLE, "</style></head><body>\n",
    ("<h1>Tasks of %s</h1><p>%d of %d.</p>\n"):format(shown(opts.dir), #items, #items + opts.left_out) }
  if opts.left_out > 0 then out[#out + 1] = "<p>The rest is shown when these are decided, or with a higher --limit.</p>\n" end
  for n, item in ipairs(items) do one(out, item, n, opts.dir, opts.is_test(item)) end
  out[#out + 1] = "</body></html>\n"
  return table.concat(out)
end

return M

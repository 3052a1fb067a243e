-- Writes docs/api.md from the annotations in lua/stdlib, and docs/errors.md from the list of codes in err.lua.
-- Usage: lua5.4 tools/docgen.lua [--check]; --check writes nothing and fails if a page is stale.
local check = arg[1] == "--check"

-- The public modules in the order of the page. Whatever is not here is private.
local MODULES = { "sandbox", "shell", "task", "rollout", "runner", "serve", "model", "probe", "conform", "tool", "agent", "prompt", "verify", "image", "traj",
  "store", "export", "render", "view", "stats", "suite", "generate", "harbor", "async", "http", "http_server", "json", "yaml", "toml", "re", "fs", "path", "hash", "time", "rand", "log", "secret", "err", "test" }

-- Files that hold methods of a module's classes; what else is in them is private.
local PARTS = { serve = { "serve/inbox" }, http_server = { "http_server/request", "http_server/stream", "http_server/hub" },
  sandbox = { "backends/_files", "backends/_layers", "backends/_process" }, runner = { "runner/delivery", "runner/watch" },
  suite = { "suite/run", "suite/attempts", "suite/students", "suite/report" },
  generate = { "generate/batch", "generate/language", "generate/signature", "generate/stages" } }

local function read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

-- A block of `---` lines, taken apart.
local function parse_doc(lines)
  local doc = { text = {}, params = {}, returns = {}, fields = {} }
  for _, line in ipairs(lines) do
    local body = line:gsub("^%-%-%-? ?", "")
    local tag, rest = body:match "^@(%w+)%s*(.*)$"
    if not tag then doc.text[#doc.text + 1] = body
    elseif tag == "param" then table.insert(doc.params, rest)
    elseif tag == "return" then table.insert(doc.returns, rest)
    elseif tag == "field" then table.insert(doc.fields, rest)
    elseif tag == "class" then doc.class = rest:match "^[%w_.]+"
    else doc[tag] = true end
  end
  while doc.text[#doc.text] == "" do doc.text[#doc.text] = nil end
  while doc.text[1] == "" do table.remove(doc.text, 1) end
  return doc
end

-- One module's file as { intro, items }: functions and classes in the order of the file.
local function parse_module(text)
  local module = { items = {} }
  local block, owners, pending = {}, {}, nil
  local first = true
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if line:find "^%-%-%-" or (first and line:find "^%-%-" and #block > 0) then
      block[#block + 1] = line
    else
      local doc = parse_doc(block)
      if first and #block > 0 and not doc.class then
        module.intro = doc.text
      elseif doc.class then
        pending = { kind = "class", name = doc.class, doc = doc }
        table.insert(module.items, pending)
      end
      local owner = line:match "^local (%u%w*) = "
      if owner and pending then owners[owner] = pending.name end
      if line ~= "" and not line:find "^local" then pending = nil end
      local prefix, sep, name, args = line:match "^function ([%w_]+)([.:])([%w_]+)%((.-)%)"
      if prefix and not name:find "^_" then
        table.insert(module.items, { kind = "function", prefix = prefix, sep = sep, name = name, args = args, doc = doc,
          class = owners[prefix], documented = #block > 0 })
      end
      block = {}
      if line ~= "" then first = false end
      if first and line == "" and module.intro then first = false end
    end
  end
  return module
end

-- "name? type # text" of a param or a field; a type may hold spaces inside brackets or after `fun(...):`.
local function split_entry(entry)
  local name, rest = entry:match "^(%S+)%s+(.*)$"
  if not name then return entry, "", "" end
  local kind, text = rest:match "^(.-)%s*#%s*(.*)$"
  return name, kind or rest, text or ""
end

local function entry_line(entry)
  local name, kind, text = split_entry(entry)
  return ("- `%s`: `%s`%s"):format(name, kind, text ~= "" and "; " .. text or "")
end

local function return_line(entry)
  local kind, text = entry:match "^(.-)%s*#%s*(.*)$"
  return ("- returns `%s`%s"):format(kind or entry, text and text ~= "" and "; " .. text or "")
end

local function add_text(out, text)
  if not text or #text == 0 then return end
  for _, line in ipairs(text) do out[#out + 1] = line end
  out[#out + 1] = ""
end

local function add_function(out, module_name, item)
  local object = item.class and item.class:match "[^.]+$":lower() or "ab." .. module_name
  local title = ("%s%s%s(%s)"):format(object, item.sep, item.name, item.args)
  out[#out + 1] = ("### `%s`%s\n"):format(title, item.doc.async and " (waits)" or "")
  add_text(out, item.doc.text)
  for _, param in ipairs(item.doc.params) do out[#out + 1] = entry_line(param) end
  for _, value in ipairs(item.doc.returns) do out[#out + 1] = return_line(value) end
  if #item.doc.params + #item.doc.returns > 0 then out[#out + 1] = "" end
end

local function add_class(out, item)
  local fields = {}
  for _, field in ipairs(item.doc.fields) do
    if not field:find "^_" and not field:find "^private" then fields[#fields + 1] = entry_line(field) end
  end
  if #fields == 0 and #item.doc.text == 0 then return end
  out[#out + 1] = ("### `%s`\n"):format(item.name)
  add_text(out, item.doc.text)
  for _, line in ipairs(fields) do out[#out + 1] = line end
  if #fields > 0 then out[#out + 1] = "" end
end

local missing = {}

local function api_page()
  local out = {
    "# The Lua API",
    "",
    "Generated from the annotations in `lua/stdlib` by `make doc`. `local ab = require \"agentbox\"`; every module is also"
      .. " `require \"agentbox.NAME\"`.",
    "",
    "What *waits* suspends the calling fiber and no other, and may be called only inside one (a script's main chunk is"
      .. " one). What the outside world can do wrong comes back as `nil, err` ([errors](errors.md)); misuse raises.",
    "",
  }
  for _, name in ipairs(MODULES) do
    local text = read(("lua/stdlib/%s.lua"):format(name))
    if text then
      local module = parse_module(text)
      out[#out + 1] = ("## ab.%s\n"):format(name)
      add_text(out, module.intro)
      for _, part in ipairs(PARTS[name] or {}) do
        for _, item in ipairs(parse_module(assert(read(("lua/stdlib/%s.lua"):format(part)))).items) do
          if item.kind == "class" or item.class then module.items[#module.items + 1] = item end
        end
      end
      for _, item in ipairs(module.items) do
        if item.kind == "class" then add_class(out, item)
        elseif item.prefix == "M" or item.class then
          if not item.documented then missing[#missing + 1] = ("ab.%s%s%s"):format(name, item.sep, item.name) end
          add_function(out, name, item)
        end
      end
    end
  end
  return table.concat(out, "\n"):gsub("\n\n\n+", "\n\n"):gsub("\n+$", "") .. "\n"
end

local function errors_page()
  local out = {
    "# Errors",
    "",
    "Generated by `make doc`. An error is a table `{ code, msg, op, sys, where }`: `code` is one of the words below and is"
      .. " stable, `msg` is prose and may change, `op` names the primitive, `sys` is the errno if the operating system"
      .. " refused, `where` the caller's line. `tostring(err)` reads well.",
    "",
    "| code | meaning |",
    "| --- | --- |",
  }
  for code, meaning in (read "lua/stdlib/err.lua"):gmatch '\n%s+{ "(%l+)", "([^"]+)" },' do
    out[#out + 1] = ("| `%s` | %s |"):format(code, meaning)
  end
  return table.concat(out, "\n") .. "\n"
end

local stale = 0
local function page(path, text)
  if not check then
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
  elseif read(path) ~= text then
    stale = stale + 1
    print(path .. " is stale: run make doc")
  end
end

page("docs/api.md", api_page())
page("docs/errors.md", errors_page())
for _, name in ipairs(missing) do print("no annotation: " .. name) end
os.exit(stale == 0 and #missing == 0 and 0 or 1)

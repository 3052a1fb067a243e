--- Command line → values, with argparse behind one declarative table per command.
--
-- A command is { name, summary, description, arguments, options, rest, run }:
--   arguments = { { "task", "what it is", args = "?" } }
--   options   = { { "-m --model", "NAME", "what it does", default = shown in the help } , { "--network", "a flag" } }
-- Further keys of an option: repeats (every value is kept), number, integer, choices.
-- Help, the manual page and the completions are made from the same tables.
local suggest = require "agentbox.suggest"

local M = {}

---Options that every command has.
M.shared = {
  { "-h --help", "show this help and exit" },
  { "-L --lua", "DIR", "search DIR for Lua modules first (repeatable, the first one wins)", repeats = true },
}

local function usage(msg)
  return nil, { code = "usage", msg = msg }
end

---The parts of one option's declaration.
---@param option table
---@return string[] names, string? metavar, string help
function M.split(option)
  local names = {}
  for name in option[1]:gmatch "%S+" do names[#names + 1] = name end
  if option[3] then return names, option[2], option[3] end
  return names, nil, option[2]
end

---The key under which an option's value is returned: --base-url gives base_url.
---@param option table
---@return string
function M.target(option)
  local names = M.split(option)
  return option.target or (names[#names]:gsub("^%-+", ""):gsub("%-", "_"))
end

---A command's own options, then those that every command has.
---@param command table
---@return table[]
function M.options(command)
  local all = {}
  for _, option in ipairs(command.options or {}) do all[#all + 1] = option end
  for _, option in ipairs(M.shared) do all[#all + 1] = option end
  return all
end

local function converter(option, label)
  if option.choices then
    return function(value)
      for _, choice in ipairs(option.choices) do
        if value == choice then return value end
      end
      return nil, ("%s must be one of: %s (not '%s')"):format(label, table.concat(option.choices, ", "), value)
    end
  end
  if not (option.number or option.integer) then return nil end
  return function(value)
    local n = tonumber(value)
    if option.integer then n = n and math.tointeger(n) end
    if n then return n end
    return nil, ("%s must be %s (not '%s')"):format(label, option.integer and "a whole number" or "a number", value)
  end
end

local function help_text(option, text)
  if option.choices then text = text .. (" (%s)"):format(table.concat(option.choices, ", ")) end
  if option.default ~= nil then text = text .. (" (default: %s)"):format(option.default) end
  return text
end

local function add_option(parser, option)
  local names, metavar, text = M.split(option)
  local name = table.concat(names, " ")
  if not metavar then
    parser:flag(name):target(M.target(option)):description(help_text(option, text))
    return
  end
  local element = parser:option(name):target(M.target(option)):argname("<" .. metavar .. ">")
      :description(help_text(option, text))
  local convert = converter(option, names[#names])
  if convert then element:convert(convert) end
  if option.repeats then element:count "*" end
end

---The argparse parser of one command; `fullname` is how the user called it ("agentbox traj show").
---@param command table
---@param fullname string
---@return table
function M.parser(command, fullname)
  local parser = require "argparse"(fullname):add_help(false):help_max_width(90)
      :description(command.description or command.summary)
  if command.epilog then parser:epilog(command.epilog) end
  for _, argument in ipairs(command.arguments or {}) do
    local element = parser:argument(argument[1]):description(argument[2])
    if argument.args then element:args(argument.args) end
  end
  if command.rest then parser:argument("rest", command.rest):args("*"):argname("<args>") end
  for _, option in ipairs(M.options(command)) do add_option(parser, option) end
  return parser
end

local function by_name(command)
  local map, names = {}, {}
  for _, option in ipairs(M.options(command)) do
    for _, name in ipairs((M.split(option))) do
      map[name] = option
      names[#names + 1] = name
    end
  end
  return map, names
end

local function takes_value(option)
  return option[3] ~= nil
end

-- One word that starts with a dash: its option, and a value glued to it.
local function match_option(word, known, names, fullname)
  local name, value = word:match "^(%-%-[^=]+)=(.*)$"
  name = name or word
  local option = known[name]
  if not option and name:sub(2, 2) ~= "-" then
    name = word:sub(1, 2)
    option = known[name]
    if option and takes_value(option) then value = word:sub(3) end
  end
  if option then return option, value end
  if word:match "^%-%d" or name:sub(2, 2) == "-" then name = word:match "^[^=]*" end
  local hint = name:sub(2, 2) == "-" and suggest.hint(name, names) or ""
  return usage(("%s: unknown option '%s'%s"):format(fullname, name, hint))
end

-- An option of the command line in the form that argparse cannot misread: --name=value in one word.
local function option_words(words, i, scan)
  local word = words[i]
  local option, value = match_option(word, scan.known, scan.names, scan.fullname)
  if not option then return nil, value end
  if not takes_value(option) then return word, i, M.target(option) == "help" end
  if not value then
    i = i + 1
    value = words[i]
    if not value then return usage(("%s: option '%s' needs a value"):format(scan.fullname, word)) end
  end
  local names = M.split(option)
  return names[#names] .. "=" .. value, i
end

-- Normal form of the words; closes the options before the first word of `rest`; finds --help.
local function normalise(command, fullname, words)
  local known, names = by_name(command)
  local scan = { known = known, names = names, fullname = fullname }
  local out, i, wanted = {}, 1, #(command.arguments or {})
  while i <= #words do
    local word = words[i]
    if word == "--" or (command.rest and word:sub(1, 1) ~= "-" and wanted <= 1) then
      if word ~= "--" then out[#out + 1] = "--" end
      table.move(words, i, #words, #out + 1, out)
      return out
    elseif word:sub(1, 1) == "-" and #word > 1 then
      local normal, at, is_help = option_words(words, i, scan)
      if not normal then return nil, at end
      if is_help then return "help" end
      out[#out + 1], i = normal, at
    else
      wanted = wanted - 1
      out[#out + 1] = word
    end
    i = i + 1
  end
  return out
end

---Parses the words after the command's name.
---Returns the values by name, or the text of the help and "help", or nil and an error of code `usage`.
---@param command table
---@param fullname string
---@param words string[]
---@return table|string|nil values
---@return table|string|nil err
function M.parse(command, fullname, words)
  local normal, bad = normalise(command, fullname, words)
  if not normal then return nil, bad end
  local parser = M.parser(command, fullname)
  if normal == "help" then return parser:get_help() .. "\n", "help" end
  local ok, result = parser:pparse(normal)
  if not ok then return usage(fullname .. ": " .. tostring(result):gsub("\n", " "):gsub("'<(.-)>'", "%1")) end
  return result
end

return M

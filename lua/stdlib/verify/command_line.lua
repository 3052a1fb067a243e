--- verify/command_line.lua: recognises a verifier command that is a plain call of pytest.
---
--- `pytest ...`, `python -m pytest ...`, `python3 -m pytest ...`, with NAME=VALUE in front if need be. Anything that
--- needs a shell (pipes, &&, variables, globs) is not recognised and runs as the command it is.
local M = {}

--- Splits into words as a shell does, quotes and backslashes included; nil when the text needs a shell.
---@param line string
---@return string[]?
function M.words(line)
  local words, word, quote, at = {}, nil, nil, 1
  while at <= #line do
    local char = line:sub(at, at)
    if quote == "'" then
      if char == "'" then quote = nil else word = word .. char end
    elseif quote == '"' then
      if char == '"' then
        quote = nil
      elseif char == "\\" and line:find('^["\\$`]', at + 1) then
        at = at + 1
        word = word .. line:sub(at, at)
      elseif char == "$" or char == "`" then
        return nil
      else
        word = word .. char
      end
    elseif char == "'" or char == '"' then
      quote, word = char, word or ""
    elseif char == "\\" then
      at = at + 1
      word = (word or "") .. line:sub(at, at)
    elseif char:find("%s") then
      if char == "\n" and line:find("%S", at) then return nil end
      if word then words[#words + 1], word = word, nil end
    elseif char:find("[|&;<>()$`*?%[#~!{}]") then
      return nil
    else
      word = (word or "") .. char
    end
    at = at + 1
  end
  if quote then return nil end
  if word then words[#words + 1] = word end
  return words
end

---@class agentbox.PytestCall
---@field env table<string, string>
---@field python string          # the interpreter to use
---@field args string[]
---@field cwd_on_path boolean    # `python -m` puts the folder it runs in on the path, `pytest` does not

--- Reads a command as a call of pytest.
---@param line string
---@return agentbox.PytestCall?
function M.pytest(line)
  local words = M.words(line)
  if not words then return nil end
  local env, at = {}, 1
  while words[at] and words[at]:find("^[%a_][%w_]*=") do
    local name, value = words[at]:match("^([%w_]+)=(.*)$")
    env[name], at = value, at + 1
  end
  local program = words[at]
  if program == "pytest" or program == "py.test" then
    return { env = env, python = "python3", args = { table.unpack(words, at + 1) }, cwd_on_path = false }
  end
  if program and program:find("^python[%d.]*$") and words[at + 1] == "-m" and words[at + 2] == "pytest" then
    return { env = env, python = program, args = { table.unpack(words, at + 3) }, cwd_on_path = true }
  end
end

--- Whether a verifier runs tests: by its type, or by a command that is a call of pytest.
---@param spec table
---@return boolean
function M.is_tests(spec)
  if spec.type == "pytest" or spec.type == "test" then return true end
  local is_command = spec.type == "command" or spec.type == "shell" or spec.type == "custom"
  return is_command and spec.command ~= nil and M.pytest(spec.command) ~= nil
end

return M

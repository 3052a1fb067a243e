--- Runs transcripts: `agentbox script transcript.lua BINARY FILE.t...`
--
-- A transcript is read by people first:
--
--     Text outside a block is prose.
--     $ agentbox versoin
--     agentbox: unknown command 'versoin', did you mean 'version'?
--     Try 'agentbox --help' for more information.
--     [exit 2]
--
-- `$ ` starts a command (`> ` continues it), what follows is its stdout and stderr as a terminal shows them, and
-- `[exit N]` ends the block. `...` alone on a line stands for any lines, `<*>` inside one for any text.
-- Each file runs in a folder of its own with an empty environment; $SRC is the source tree. Before the comparison
-- that folder becomes TMP, the tree SRC, a UUID ID, an ISO time TIME and a duration such as `0.31 s` N s.

local async = require "agentbox.async"
local fs = require "agentbox.fs"

local binary, source = arg[1], arg[2]

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function read_file(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- In the background, so that a long command does not stop the engine: its status is there when it has ended.
local function capture(command, folder)
  local stdout, status = folder .. ".out", folder .. ".status"
  assert(os.execute(("{ %s >%s 2>&1; echo $? >%s.part; mv %s.part %s; } &")
      :format(command, quote(stdout), quote(status), quote(status), quote(status))))
  while not fs.exists(status) do async.sleep(0.01) end
  local text, code = read_file(stdout), tonumber(read_file(status))
  os.remove(stdout)
  os.remove(status)
  return text, code
end

local function blocks_of(path)
  local blocks, block, number = {}, nil, 0
  for line in io.lines(path) do
    number = number + 1
    if not block and line:find "^%$ " then
      block = { command = line:sub(3), expected = {}, line = number }
    elseif block and (line:find "^> " or line == ">") and #block.expected == 0 then
      block.command = block.command .. "\n" .. line:sub(3)
    elseif block and line:find "^%[exit %d+%]$" then
      block.status = tonumber(line:match "%d+")
      blocks[#blocks + 1], block = block, nil
    elseif block then
      block.expected[#block.expected + 1] = line
    end
  end
  assert(not block, path .. ": the last block has no [exit N]")
  return blocks
end

local hex = "%x%x%x%x"
local uuid = hex .. hex .. "%-" .. hex .. "%-" .. hex .. "%-" .. hex .. "%-" .. hex .. hex .. hex

local function plain(text)
  return (text:gsub("%p", "%%%0"))
end

local function normal(text, folder)
  text = text:gsub(plain(folder), "TMP"):gsub(plain(source), "SRC"):gsub(uuid, "ID")
  text = text:gsub("%d%d%d%d%-%d%d%-%d%dT[%d:.]+Z", "TIME")
  return (text:gsub("%d+%.%d+ s%f[%A]", "N s"))
end

local function lines_of(text)
  local lines = {}
  for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  if #lines == 1 and lines[1] == "" then return {} end
  return lines
end

local function line_matches(expected, line)
  if expected == line then return true end
  if not expected:find("<*>", 1, true) then return false end
  local pattern = plain(expected):gsub("%%<%%%*%%>", ".*")
  return line:find("^" .. pattern .. "$") ~= nil
end

local function matches(expected, lines, i, j)
  if i > #expected then return j > #lines end
  if expected[i] == "..." then
    for k = j, #lines + 1 do
      if matches(expected, lines, i + 1, k) then return true end
    end
    return false
  end
  return j <= #lines and line_matches(expected[i], lines[j]) and matches(expected, lines, i + 1, j + 1)
end

local function run_block(block, folder)
  local path = binary:match "^(.*)/" .. ":/usr/bin:/bin:/usr/sbin:/sbin"
  local environment = ("env -i HOME=%s TMPDIR=%s LANG=C.UTF-8 SRC=%s PATH=%s")
      :format(quote(folder), quote(folder), quote(source), quote(path))
  local text, status = capture(("(cd %s && exec %s sh -c %s) </dev/null")
      :format(quote(folder), environment, quote(block.command)), folder)
  local lines = lines_of(normal(text, folder))
  if status == block.status and matches(block.expected, lines, 1, 1) then return nil end
  return ("expected:\n    %s\n    [exit %d]\n  got:\n    %s\n    [exit %s]"):format(
    table.concat(block.expected, "\n    "), block.status, table.concat(lines, "\n    "), status)
end

local passed, failed = 0, 0

local function run_file(path)
  local folder = assert(fs.tmpdir "agentbox-cli")
  for _, block in ipairs(blocks_of(path)) do
    local problem = run_block(block, folder)
    if problem then
      failed = failed + 1
      print(("not ok - %s:%d: %s\n  %s"):format(path, block.line, block.command, problem))
    else
      passed = passed + 1
      print(("ok - %s:%d: %s"):format(path, block.line, block.command:match "^[^\n]*"))
    end
  end
  fs.remove(folder, true)
end

for i = 3, #arg do run_file(arg[i]) end
print(("%d passed, %d failed, 0 skipped"):format(passed, failed))
return failed == 0 and passed > 0 and 0 or 1

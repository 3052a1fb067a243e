--- The runner behind `agentbox test`: finds the files, runs each test in a fiber of its own, and looks for
--- what a test left behind. Prints TAP lines and, last, `N passed, N failed, N skipped`.
local fiber = require "agentbox.sys.fiber"
local fs = require "agentbox.sys.fs"
local http = require "agentbox.sys.http"
local sandbox = require "agentbox.sys.sandbox"
local test = require "agentbox.test"
local traces = require "agentbox.traceback"

local M = {}

local function collect(path, into)
  local stat = fs.stat(path)
  if not stat then return nil, { code = "usage", msg = path .. ": no such file or folder" } end
  if stat.type ~= "dir" then
    into[#into + 1] = path
    return true
  end
  local entries, err = fs.list(path)
  if not entries then return nil, err end
  for _, entry in ipairs(entries) do
    local child = path .. "/" .. entry.name
    if entry.type == "dir" then
      local ok, bad = collect(child, into)
      if not ok then return nil, bad end
    elseif entry.name:find "_test%.lua$" then
      into[#into + 1] = child
    end
  end
  return true
end

-- luaunit keeps its own runner and its own exit; here it lends its assertions only.
local function tame_luaunit(env)
  local function lend()
    local lu = require "luaunit"
    lu.LuaUnit.run = function() return 0 end
    lu.run = lu.LuaUnit.run
    return lu
  end
  env.require = function(name)
    if name == "luaunit" then return lend() end
    return require(name)
  end
  env.os = setmetatable({ exit = function() end }, { __index = os })
end

local function line_of(fn)
  return debug.getinfo(fn, "S").linedefined
end

local function by_line(a, b)
  local la, lb = line_of(a.fn), line_of(b.fn)
  if la ~= lb then return la < lb end
  return a.name < b.name
end

local function add_tests(prefix, suite, into)
  local found, inner = {}, {}
  for name, value in pairs(suite) do
    if type(name) == "string" and type(value) == "function" and name:lower():find "^test" then
      found[#found + 1] = { name = prefix .. name, fn = value, suite = suite }
    elseif type(name) == "string" and type(value) == "table" and prefix == "" then
      inner[#inner + 1] = name
    end
  end
  table.sort(found, by_line)
  table.move(found, 1, #found, #into + 1, into)
  table.sort(inner)
  for _, name in ipairs(inner) do add_tests(name .. ".", suite[name], into) end
end

local function load_tests(path)
  require "agentbox.loader".set_script_dir(path:match "^(.*)/[^/]*$" or ".")
  local env = setmetatable({ arg = { [0] = path } }, { __index = _G })
  tame_luaunit(env)
  local chunk, msg = loadfile(path, "t", env)
  if not chunk then return nil, msg end
  local ok, suite = xpcall(chunk, traces.text, path)
  if not ok then return nil, suite end
  local tests, globals = {}, {}
  for name, value in pairs(env) do
    if type(name) == "string" and name:lower():find "^test" then globals[name] = value end
  end
  add_tests("", globals, tests)
  if type(suite) == "table" then add_tests("", suite, tests) end
  if #tests == 0 then return nil, path .. ": no test in this file" end
  return tests
end

local function trace(err)
  if type(err) == "table" and err.cancel then return err end
  local text = tostring(err)
  if text:find(test._skip_prefix, 1, true) == 1 then return text end
  return traces.text(text)
end

local function hook(suite, ...)
  for _, name in ipairs { ... } do
    if type(suite[name]) == "function" then return suite[name](suite) end
  end
end

local function body(case)
  hook(case.suite, "setUp", "setup")
  local ok, err = xpcall(case.fn, trace, case.suite)
  hook(case.suite, "tearDown", "teardown")
  if not ok then error(err, 0) end
end

local function call(case, timeout_s)
  local child = fiber.spawn(function() return pcall(body, case) end)
  local guard <close> = setmetatable({}, { __close = function() child:cancel() end }) -- luacheck: ignore
  local done, ok, err = child:join(timeout_s)
  if done == nil then
    child:cancel()
    child:join(5)
    return false, ("no end after %g s"):format(timeout_s)
  elseif not done then
    return false, tostring(ok)
  end
  return ok, err
end

-- Closing a handle takes the loop a turn. What is kept for the next sandboxes and requests is nobody's leak.
local function settle()
  collectgarbage()
  collectgarbage()
  sandbox.forget()
  http.forget()
  for _ = 1, 3 do fiber.yield() end
end

-- What a test must not leave behind, as counts by kind.
local function census()
  settle()
  local stats, children = fiber.stats(), 0
  for _, thread in ipairs(fs.list "/proc/self/task" or {}) do
    local file = io.open("/proc/self/task/" .. thread.name .. "/children")
    local text = file and file:read "a" or ""
    if file then file:close() end
    for _ in text:gmatch "%d+" do children = children + 1 end
  end
  return {
    fibers = stats.fibers, operations = stats.ops, descriptors = #(fs.list "/proc/self/fd" or {}), children = children,
  }
end

local function left_over(before)
  local now, out = census(), {}
  for kind, count in pairs(now) do
    if count > before[kind] then out[#out + 1] = ("%d %s"):format(count - before[kind], kind) end
  end
  table.sort(out)
  return #out > 0 and table.concat(out, ", ") or nil
end

-- Whatever is opened once and kept (a zygote, a pool) grows once; what grows again is a leak.
local function run_case(case, opts)
  local before = census()
  local ok, err = call(case, opts.timeout_s)
  if not ok or not left_over(before) then return ok, err end
  before = census()
  ok, err = call(case, opts.timeout_s)
  local rest = left_over(before)
  if ok and rest then return false, "left behind: " .. rest end
  return ok, err
end

local function skip_reason(err)
  local text = tostring(err)
  if text:find(test._skip_prefix, 1, true) == 1 then return text:sub(#test._skip_prefix + 1):match "^[^\n]*" end
  return text:match "LuaUnit test SKIP:%s*([^\n]*)"
end

local function say(total, status, name, detail)
  total.n = total.n + 1
  if status == "failed" or not total.quiet then
    local mark = status == "failed" and "not ok" or "ok"
    io.stdout:write(("%s %d - %s%s\n"):format(mark, total.n, name, status == "skipped" and " # SKIP " .. detail or ""))
  end
  if status == "failed" then io.stdout:write("# ", (detail:gsub("\n", "\n# ")), "\n") end
  io.stdout:flush()
  total[status] = total[status] + 1
end

local function run_file(path, opts, total)
  local tests, problem = load_tests(path)
  if not tests then return say(total, "failed", path, problem) end
  for _, case in ipairs(tests) do
    local name = path .. ": " .. case.name
    if not opts.only or name:find(opts.only, 1, true) then
      local ok, err = run_case(case, opts)
      local reason = not ok and skip_reason(err)
      if ok then say(total, "passed", name)
      elseif reason then say(total, "skipped", name, reason)
      else say(total, "failed", name, tostring(err)) end
    end
  end
end

---@async
---@param paths string[]                                   # files, or folders that hold *_test.lua
---@param opts { only?: string, timeout_s?: number, quiet?: boolean }
---@return integer? failed
---@return table? err
function M.run(paths, opts)
  local files = {}
  for _, path in ipairs(paths) do
    local ok, err = collect((path:gsub("(.)/+$", "%1")), files)
    if not ok then return nil, err end
  end
  if #files == 0 then return nil, { code = "usage", msg = "no *_test.lua under " .. table.concat(paths, ", ") } end
  table.sort(files)
  local total = { n = 0, passed = 0, failed = 0, skipped = 0, quiet = opts.quiet }
  local settings = { only = opts.only, timeout_s = opts.timeout_s or 60 }
  for _, path in ipairs(files) do run_file(path, settings, total) end
  io.stdout:write(("1..%d\n%d passed, %d failed, %d skipped\n")
      :format(total.n, total.passed, total.failed, total.skipped))
  return total.failed
end

return M

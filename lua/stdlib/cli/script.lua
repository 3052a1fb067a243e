--- `agentbox script FILE [ARGS...]`: a Lua file as the main fiber.
local M = {
  name = "script",
  summary = "run a Lua file with the library loaded",
  description = "Runs FILE as the main fiber: everything that waits may be called at its top level. "
      .. "ARGS are in the global `arg`; modules beside FILE are found first.",
  arguments = { { "file", "a Lua file" } },
  rest = "arguments for the script, passed unchanged",
  epilog = "Exit status: the integer that the file returns, the one given to os.exit, or 1 after an uncaught error.",
}

local function folder(path)
  return path:match "^(.*)/[^/]*$" or "."
end

local function put_first(dir)
  local loader = package.loaded["agentbox.loader"]
  if loader and loader.script_dir then return loader.script_dir(dir) end
  package.path = ("%s/?.lua;%s/?/init.lua;%s"):format(dir, dir, package.path)
end

function M.run(args)
  local chunk, msg = loadfile(args.file, "t")
  if not chunk then
    local file = io.open(args.file, "r")
    if not file then return nil, { code = "usage", msg = (msg:gsub("^cannot open ", "cannot open the script ")) } end
    file:close()
    return nil, { code = "config", msg = msg }
  end
  put_first(folder(args.file))
  _G.arg = { [0] = args.file, table.unpack(args.rest) }
  local result = chunk(table.unpack(args.rest))
  return math.type(result) == "integer" and result or 0
end

return M

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

local function load_file(path)
  local chunk, msg = loadfile(path, "t")
  if chunk then return chunk end
  local file = io.open(path, "r")
  if not file then return nil, { code = "usage", msg = "script: " .. msg } end
  file:close()
  return nil, { code = "config", msg = msg }
end

-- Cancel and os.exit pass; everything else that a script lets escape is its author's to read.
local function on_raise(err)
  if type(err) == "table" and err.cancel then return err end
  return { code = "defect", msg = require "agentbox.traceback".text(err) }
end

function M.run(args)
  local chunk, err = load_file(args.file)
  if not chunk then return nil, err end
  require "agentbox.loader".set_script_dir(folder(args.file))
  _G.arg = { [0] = args.file, table.unpack(args.rest) }
  local ok, result = xpcall(chunk, on_raise, table.unpack(args.rest))
  if not ok and type(result) == "string" then -- out of memory: no handler runs then
    result = { code = "defect", msg = ("%s: %s"):format(args.file, result) }
  end
  if not ok then return nil, result end
  if math.type(result) ~= "integer" then return 0 end
  return result >= 0 and result < 256 and result or 1 -- the system would keep eight bits, and 256 would be success
end

return M

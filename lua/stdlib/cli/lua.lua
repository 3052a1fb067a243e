--- `agentbox lua list|eject|diff|check`: working with the library's own source.
local M = {
  name = "lua",
  summary = "list, copy, compare and check Lua modules",
}

local function list(args)
  local modules, err = require "agentbox.overlay".list()
  if not modules then return nil, err end
  if args.json then
    io.stdout:write(require "agentbox.json".encode(modules), "\n")
    return 0
  end
  for _, module in ipairs(modules) do
    local note = module.shadows and "  (hides the built-in)" or ""
    io.stdout:write(("%-40s %s%s\n"):format(module.name, module.from, note))
  end
  return 0
end

local function first_overlay()
  local dirs = require "agentbox.loader".overlays()
  if dirs[1] then return dirs[1] end
  return nil, { code = "usage", msg = "lua eject: no overlay folder; name one with --to DIR or -L DIR" }
end

local function eject(args)
  local dir, err = args.to
  if not dir then dir, err = first_overlay() end
  if not dir then return nil, err end
  local path
  path, err = require "agentbox.overlay".eject(args.module, dir)
  if not path then
    if err.code == "exists" then err.hint = "Remove the file first, or look at it with 'agentbox lua diff'." end
    err.code = err.code == "notfound" and "usage" or err.code
    return nil, err
  end
  io.stdout:write(path, "\n")
  return 0
end

local function describe(drift)
  if not drift.from then return "written by hand" end
  return ("ejected from %s, built-in %s since"):format(drift.from, drift.upstream_changed and "changed" or "unchanged")
end

local function diff(args)
  local drifts, err = require "agentbox.overlay".diff(args.module)
  if not drifts then return nil, err end
  for _, drift in ipairs(drifts) do
    io.stdout:write(("# %s: %s\n"):format(drift.name, describe(drift)))
    io.stdout:write(drift.diff or "# no difference\n")
  end
  if args.module and #drifts == 0 then
    return nil, { code = "usage", msg = ("lua diff: no overlay file hides '%s'"):format(args.module) }
  end
  return 0
end

local function check(args)
  local problems, count = require "agentbox.overlay".check(args.dir)
  if not problems then return nil, count end
  for _, problem in ipairs(problems) do io.stdout:write(problem, "\n") end
  io.stdout:write(("%d modules, %d problems\n"):format(count, #problems))
  return #problems == 0 and 0 or 1
end

M.commands = {
  {
    name = "list", summary = "every module and where it comes from",
    options = { { "--json", "print JSON" } }, run = list,
  },
  {
    name = "eject", summary = "copy a built-in module into an overlay, to change it",
    description = "Copies the source of MODULE into the first overlay folder, with a first line that says which "
        .. "version it came from. From then on the copy is used.",
    arguments = { { "module", "as in agentbox.tools.read_file" } },
    options = { { "--to", "DIR", "the overlay folder (default: the first -L)" } },
    run = eject,
  },
  {
    name = "diff", summary = "what the overlays change, and whether the built-in changed since",
    arguments = { { "module", "one module only", args = "?" } }, run = diff,
  },
  {
    name = "check", summary = "load every module of an overlay and check its contract",
    arguments = { { "dir", "an overlay folder" } }, run = check,
  },
}

return M

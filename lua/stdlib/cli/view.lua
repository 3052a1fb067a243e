--- `agentbox view RUN`: its pages in a browser, live.
local M = {
  name = "view",
  summary = "look at a run in a browser, while it goes on",
  description = "Serves the pages that `traj render` writes, live: rows as rollouts end, what was said when it is "
      .. "opened. RUN is a run's folder, its id below --out, the beginning of the id of a run that goes on, or whatever "
      .. "`traj render` takes. Only files are read; the run does not notice. Beyond the loopback browsers need a token: "
      .. "AGENTBOX_TOKEN, or one that is made and printed. Ctrl-C ends it.",
  arguments = { { "run", "what to look at" } },
  options = {
    { "--listen", "ADDRESS", "where: ADDRESS:PORT; port 0 is a free one", default = "127.0.0.1:0" },
    { "-o --out", "DIR", "where runs are", default = "trajectories" },
  },
  epilog = "Exit status: 0, 2 nothing there or the address cannot be had.",
}

local function is_loopback(listen)
  return listen:find "^127%." ~= nil or listen:find "^localhost:" ~= nil or listen:find "^%[::1%]:" ~= nil
      or listen:find "^unix:" ~= nil or listen:find "^%d+$" ~= nil
end

-- A token that nobody chose is only printed, with the address that has it.
local function token_of(listen)
  local given = require "agentbox.sys.os".env "AGENTBOX_TOKEN"
  if given and given ~= "" then return given end
  if is_loopback(listen) then return nil end
  local bytes = require "agentbox.sys.rand".bytes(18)
  local made = bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end)
  return made, made
end

-- A run's folder tells how it is; anything else is only what lies there.
local function place_of(args)
  local runs = require "agentbox.cli._runs"
  local run_dir, err = runs.find(args.run, args.out or "trajectories")
  if not run_dir then
    if not require "agentbox.fs".exists(args.run) then return nil, nil, err end
    return args.run
  end
  return run_dir, function()
    local found = runs.look(run_dir)
    if not found then return nil end
    return { state = found.state, total = found.progress and found.progress.total }
  end
end

function M.run(args)
  local path, state, err = place_of(args)
  if not path then return nil, err end
  local listen = args.listen or "127.0.0.1:0"
  local token, shown = token_of(listen)
  local opts = { path = path, listen = listen, token = token, state = state }
  local view <close>, problem = require "agentbox.view".open(opts)
  if not view then return nil, problem end
  io.stdout:write(view.url, "/", shown and "?token=" .. shown or "", "\n")
  io.stdout:flush()
  view:wait()
  return 0
end

return M

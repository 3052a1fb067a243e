--- `agentbox build-image`: what `docker build` does, through the engine's socket.
local out = require "agentbox.cli._out"

local TAG, DIR = "agentbox/sandbox:latest", "docker/python-sandbox"

local M = {
  name = "build-image",
  summary = "build an image with Docker or podman",
  description = "Sends PATH to Docker or podman and builds PATH/Dockerfile there, its log shown as it comes. Prints the "
      .. "tag and the id. Without a daemon, `agentbox image build` understands the usual instructions.",
  options = {
    { "-t --tag", "NAME", "what to call it", default = TAG },
    { "--path", "DIR", "the folder with the Dockerfile", default = DIR },
    { "-b --backend", "NAME", "docker or podman", default = "docker" },
    { "--network", "NAME", "of RUN, as the engine calls it: none, host; default: its own" },
    { "--no-cache", "do every step again" }, { "--pull", "look for a newer base" },
    { "-q --quiet", "do not show the log" },
  },
  epilog = "Exit status: 0 built, 2 no Dockerfile, 3 the engine failed or a step did.",
}

local function usage(msg) return nil, { code = "usage", msg = msg } end

function M.run(args)
  local backend, dir, tag = args.backend or "docker", args.path or DIR, args.tag or TAG
  if backend ~= "docker" and backend ~= "podman" then
    return usage("build-image: --backend is docker or podman; without them, use `agentbox image build`")
  end
  local fs = require "agentbox.sys.fs"
  local file = fs.stat(dir .. "/Dockerfile")
  if not file or file.type ~= "file" then return usage(("no Dockerfile in %s"):format(dir)) end
  local api, err = require("agentbox.backends." .. backend).api()
  if not api then return nil, err end
  local context
  context, err = require "agentbox.docker.context".pack(dir)
  if not context then return nil, err end
  local id
  id, err = require "agentbox.docker.image".build(api, context, tag, function(text)
    if not args.quiet then io.stdout:write(out.clean(text)) end
  end, { no_cache = args.no_cache, pull = args.pull, network = args.network })
  if not id then return nil, err end
  io.stdout:write(("%s %s\n"):format(tag, id:gsub("^sha256:", ""):sub(1, 12)))
  return 0
end

return M

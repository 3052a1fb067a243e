--- `agentbox image`: images for sandboxes, without a daemon.
local out = require "agentbox.cli._out"

local M = {
  name = "image",
  summary = "pull, import, build and remove images for sandboxes",
}

local JSON = { "--json", "print JSON" }

local function usage(msg)
  return nil, { code = "usage", msg = msg }
end

local function put_json(value)
  io.stdout:write(require "agentbox.json".encode(value), "\n")
  return 0
end

local function size(bytes)
  if bytes < 1e6 then return ("%.1f kB"):format(bytes / 1e3) end
  if bytes < 1e9 then return ("%.1f MB"):format(bytes / 1e6) end
  return ("%.2f GB"):format(bytes / 1e9)
end

local function row_of(image)
  return {
    name = image.name, id = image.id, digest = image.digest, size = image.size, source = image.source, at = image.at,
    created = image.created, architecture = image.architecture, unpacked = image.root ~= nil,
  }
end

local function put_images(args, images)
  if args.json then
    local rows = require "agentbox.json".array {}
    for i, image in ipairs(images) do rows[i] = row_of(image) end
    return put_json(rows)
  end
  for _, image in ipairs(images) do
    local id = image.id:sub(8, 19)
    io.stdout:write(("%-40s %s  %9s  %s\n"):format(out.line(image.name), id, size(image.size), image.source))
  end
  return 0
end

-- One line that is written over itself, on a terminal.
local function progress()
  local os_ = require "agentbox.sys.os"
  if not os_.isatty(2) then return nil end
  local shown = 0
  return function(done, total)
    local now = require "agentbox.sys.time".monotonic()
    if now - shown < 0.1 and done < total then return end
    shown = now
    os_.write(2, ("\r%s of %s%s"):format(size(done), size(total), done >= total and "\n" or " "))
  end
end

local function megabytes(args)
  local n = args.max_mb and tonumber(args.max_mb)
  if args.max_mb and not (n and n > 0) then return usage "image: --max-mb wants a number" end
  return n and math.floor(n) << 20 or nil
end

local function pull(args)
  local max_bytes, bad = megabytes(args)
  if bad then return nil, bad end
  local image, err = require "agentbox.image".pull(args.name, {
    platform = args.platform, insecure = args.insecure, max_bytes = max_bytes, on_progress = progress(),
  })
  if not image then return nil, err end
  return put_images(args, { image })
end

local function import(args)
  local max_bytes, bad = megabytes(args)
  if bad then return nil, bad end
  local images, err = require "agentbox.image".import(args.path, {
    name = args.name, ref = args.ref, platform = args.platform, max_bytes = max_bytes,
  })
  if not images then return nil, err end
  return put_images(args, images)
end

local function build_args(list)
  local given = {}
  for _, text in ipairs(list or {}) do
    local key, value = text:match "^([%a_][%w_]*)=(.*)$"
    if not key then return usage(("image build: --build-arg wants NAME=VALUE, not '%s'"):format(text)) end
    given[key] = value
  end
  return given
end

local function build_limits(args)
  local limits = {}
  for _, key in ipairs { "memory_mb", "disk_mb" } do
    local n = args[key] and tonumber(args[key])
    if args[key] and not (n and n > 0) then return usage "image build: sizes are numbers of MB" end
    limits[key] = n
  end
  return limits
end

local function build(args)
  if not args.tag then return usage "image build: option '--tag' is required" end
  local given, err = build_args(args.build_arg)
  local limits
  if given then limits, err = build_limits(args) end
  if not limits then return nil, err end
  local file = args.file
  if not file and not args.from then file = (args.context or ".") .. "/Dockerfile" end
  if args.file and args.from then
    return usage "image build: a Dockerfile says itself where it begins; leave out --from"
  end
  local os_ = require "agentbox.sys.os"
  local image
  image, err = require "agentbox.image".build {
    name = args.tag, file = file, from = args.from, run = args.run,
    context = args.context or not args.from and "." or nil,
    args = given, network = args.network, limits = limits, insecure = args.insecure, no_cache = args.no_cache,
    on_progress = progress(),
    on_step = not args.quiet and function(step) os_.write(2, out.line(step.text) .. "\n") end or nil,
    on_output = not args.quiet and function(chunk) os_.write(2, out.clean(chunk)) end or nil,
  }
  if not image then return nil, err end
  return put_images(args, { image })
end

local function list(args)
  local images, err = require "agentbox.image".list()
  if not images then return nil, err end
  return put_images(args, images)
end

local function put_text(image)
  local function put(key, value)
    if value then io.stdout:write(("%-13s %s\n"):format(key, out.line(tostring(value)))) end
  end
  put("name", image.name)
  put("id", image.id)
  put("digest", image.digest)
  put("architecture", image.architecture)
  put("created", image.created)
  put("source", image.source)
  put("workdir", image.workdir)
  put("user", image.user)
  local keys = require "agentbox.json".keys(image.env)
  for _, key in ipairs(keys) do put("env", key .. "=" .. image.env[key]) end
  for _, layer in ipairs(image.layers) do put("layer", ("%s %s"):format(layer.digest, size(layer.size))) end
  put("files", image.root or "not unpacked")
end

local function inspect(args)
  local image, err = require "agentbox.image".get(args.name)
  if not image then return nil, err end
  if args.json then return put_json(image) end
  put_text(image)
  return 0
end

local function rm(args)
  local removed = {}
  for i, text in ipairs(args.names) do
    local name, err = require "agentbox.image".rm(text)
    if not name then return nil, err end
    removed[i] = name
  end
  if args.json then return put_json { removed = removed } end
  for _, name in ipairs(removed) do io.stdout:write(out.line(name), "\n") end
  return 0
end

local function gc(args)
  local counts, err = require "agentbox.image".gc { check = args.check }
  if not counts then return nil, err end
  if args.json then return put_json(counts) end
  local function put(text, ...) io.stdout:write(text:format(...), "\n") end
  put("removed %d trees, %d blobs, %d leftovers: %s", counts.trees, counts.blobs, counts.leftovers, size(counts.bytes))
  if counts.damaged > 0 then put("removed %d damaged blobs; pull their images again", counts.damaged) end
  if counts.in_use > 0 then put("kept %d trees that sandboxes stand on", counts.in_use) end
  return 0
end

local PLATFORM = { "--platform", "OS/ARCH", "of an image for several; default: this machine's" }
local MAX_MB = { "--max-mb", "N", "what it may unpack to; default 65536, but at most 250 times its packed size" }

M.commands = {
  {
    name = "pull", summary = "fetch an image from a registry",
    description = "Fetches NAME (python:3.12, registry.example/team/name:tag, name@sha256:...) and unpacks it. What is "
        .. "here is not fetched again, what was cut off goes on. Presets: python, node, go.",
    arguments = { { "name", "what to fetch" } },
    options = { PLATFORM, { "--insecure", "speak plain HTTP; done for loopback registries anyway" }, MAX_MB, JSON },
    run = pull,
  },
  {
    name = "import", summary = "take an image from a file",
    description = "PATH is what `docker save` wrote, an OCI layout (a folder or a tar of one), or a tar of a root file "
        .. "system, compressed or not. - is standard input.",
    arguments = { { "path", "a file or a folder" } },
    options = { { "-n --name", "NAME", "what to call it" },
      { "--ref", "NAME", "which image of an OCI layout with several" }, PLATFORM, MAX_MB, JSON },
    run = import,
  },
  {
    name = "build", summary = "build an image from a Dockerfile or from commands",
    description = "Builds from CONTEXT/Dockerfile, or from --from and --run. Commands run in a sandbox without network "
        .. "unless --network full. Understood are FROM, RUN, COPY, local ADD, ENV, WORKDIR, USER and ARG.",
    arguments = { { "context", "the folder that COPY takes files from", args = "?" } },
    options = {
      { "-t --tag", "NAME", "what to call it" }, { "-f --file", "FILE", "the Dockerfile; default: CONTEXT/Dockerfile" },
      { "--from", "IMAGE", "without a Dockerfile: what to begin with" },
      { "--run", "COMMAND", "without a Dockerfile: a shell command (repeatable)", repeats = true },
      { "--build-arg", "NAME=VALUE", "a value for ARG (repeatable)", repeats = true },
      { "--network", "none|full", "of the commands", default = "none" },
      { "--memory-mb", "N", "of the commands", default = "4096" },
      { "--disk-mb", "N", "what each may write", default = "8192" },
      { "--no-cache", "do every step again" }, { "--insecure", "fetch the base over plain HTTP" },
      { "-q --quiet", "do not show steps and what they print" }, JSON,
    },
    run = build,
  },
  {
    name = "list", summary = "the images that are here",
    description = "Lists names, ids, packed sizes and where each image came from.",
    options = { JSON }, run = list,
  },
  {
    name = "inspect", summary = "all about one image",
    description = "NAME may be a name or the beginning (12 digits or more) of an id or a digest.",
    arguments = { { "name", "an image" } }, options = { JSON }, run = inspect,
  },
  {
    name = "rm", summary = "take names away",
    description = "Removes names. Files and layers that nothing needs any more go with `agentbox image gc`.",
    arguments = { { "names", "images", args = "+" } }, options = { JSON }, run = rm,
  },
  {
    name = "gc", summary = "remove what no image needs",
    description = "Removes layers and files that no name leads to, and what killed processes left. What a running "
        .. "sandbox stands on stays.",
    options = { { "--check", "read every blob, and remove those that are damaged" }, JSON }, run = gc,
  },
}

return M

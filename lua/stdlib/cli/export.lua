--- `agentbox export TRAJ...`: trajectories in a trainer's format.
local M = {
  name = "export",
  summary = "write trajectories in a trainer's format",
  description = "Converts trajectories: records, run folders, folders or AgentBox JSON. OUT that ends in .jsonl gets "
      .. "lines, OUT that ends in / a file for each trajectory, any other OUT the document of the one trajectory there "
      .. "is. What a format cannot carry is reported on stderr.",
  arguments = { { "traj", "a record, a run folder or an AgentBox JSON", args = "+" } },
  options = {
    { "-f --format", "NAME", "agentbox, jsonl, canonical, art, trl, verl, skyrl, verifiers, prime-rl, slime, openrlhf, "
      .. "openai, sharegpt, prompt-completion, preference, pretokenized, or an overlay's", default = "art" },
    { "-o --out", "OUT", "the file or folder to write" },
    { "-O --set", "NAME=VALUE", "an option of the format (repeatable)", repeats = true },
    { "--tool-args", "FORM", "arguments of tool calls as a string or an object, where the format has them" },
    { "--min-reward", "X", "leave out what is unscored or has a lower reward" },
    { "--max-reward", "X", "leave out what is unscored or has a higher reward" },
    { "--status", "STATUS", "only these: success, failed, timeout, error, max_steps (repeatable)", repeats = true },
    { "--best", "N", "the N best of each group, by reward" },
    { "--dedupe", "leave out what has the same messages as one before" },
    { "--max-tokens", "N", "leave out what grew longer, as the server counted" },
    { "--strict", "fail when the format cannot carry everything" },
    { "-q --quiet", "no report on stderr" },
    { "--json", "print what was written and left out, as JSON" },
  },
}

local function usage(msg)
  return nil, { code = "usage", msg = "export: " .. msg }
end

local function options_of(list)
  local out = {}
  for _, text in ipairs(list or {}) do
    local name, value = text:match "^([%w_]+)=(.*)$"
    if not name then return usage(("--set wants NAME=VALUE, not '%s'"):format(text)) end
    if value == "true" or value == "false" then
      out[name] = value == "true"
    else
      out[name] = tonumber(value) or value
    end
  end
  return out
end

local function make_parent(out)
  local parent = out:gsub("/+$", ""):match "^(.+)/[^/]*$"
  if not parent then return true end
  return require "agentbox.sys.fs".mkdir(parent, true)
end

local function print_result(args, result)
  local export = require "agentbox.export"
  if args.json then
    io.stdout:write(require "agentbox.json".encode(result), "\n")
    return
  end
  for _, path in ipairs(result.files) do io.stdout:write(path, "\n") end
  if args.quiet then return end
  io.stderr:write(export.report(args.format or "art", result))
  if #result.files > 0 then io.stderr:write(("trajectories taken: %d\n"):format(result.written)) end
end

local NUMBERS = { min_reward = "number", max_reward = "number", best = "integer", max_tokens = "integer" }

local function filter_of(args)
  local out = { status = args.status and args.status[1] and args.status or nil, dedupe = args.dedupe }
  for name, kind in pairs(NUMBERS) do
    local text = args[name]
    local value = tonumber(text)
    if text and not (kind == "integer" and math.tointeger(value) or kind == "number" and value) then
      return usage(("--%s wants %s, not '%s'"):format(name:gsub("_", "-"), kind == "integer" and "a whole number" or "a number", text))
    end
    out[name] = kind == "integer" and math.tointeger(value) or value
  end
  return out
end

function M.run(args)
  if not args.out then return usage "option '--out' is required" end
  -- A link like /dev/stdout would be replaced by the file.
  if args.out == "-" or args.out:find "^/dev/std" or args.out:find "^/dev/fd/" or args.out:find "^/proc/" then
    return usage(("--out '%s' is a stream; files get their names when they are whole, so name a file"):format(args.out))
  end
  local options, err = options_of(args.set)
  if not options then return nil, err end
  options.tool_args = args.tool_args or options.tool_args
  local filter, ok
  filter, err = filter_of(args)
  if not filter then return nil, err end
  ok, err = make_parent(args.out)
  if not ok then return nil, err end
  local result
  result, err = require "agentbox.export".convert {
    input = args.traj, format = args.format or "art", out = args.out, strict = args.strict, options = options,
    filter = filter,
  }
  if not result then return nil, err end
  print_result(args, result)
  if #result.files == 0 then
    return nil, {
      code = "usage", msg = "export: no trajectory of the input can be written in this format",
      hint = "`agentbox traj check` says what may be trained on and why the rest may not; docs/training.md has what to do about it.",
    }
  end
  return 0
end

return M

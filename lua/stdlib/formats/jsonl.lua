--- AgentBox's trajectory, one compact line for each rollout.
local agentbox = require "agentbox.formats.agentbox"

return {
  api = 1,
  name = "jsonl",
  summary = "AgentBox's trajectory JSON, one line per rollout",
  extension = ".jsonl",
  lines = true,
  reads = agentbox.reads,
  never = agentbox.never,
  convert = agentbox.convert,
}

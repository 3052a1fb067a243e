--- The facade: `local ab = require "agentbox"`. Submodules are loaded on first use.
local M = {}
return M

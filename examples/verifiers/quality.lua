--- A verifier that names its numbers: how much of the test suite passes, and how small the change is.
---
---     agentbox run tasks/fix_reverse --verifier examples/verifiers/quality.lua
---
--- The reward is the weighted sum; each number is recorded beside it as a component.
local ab = require "agentbox"

return ab.verify.compose {
  { "tests", 0.8, ab.verify.pytest {} },
  { "small", 0.2, function(ev)
    local changed = #ev:diff()
    return changed <= 2 and 1 or 0, ("%d files changed"):format(changed)
  end },
}

--- `agentbox test PATH...`: runs Lua tests inside fibers.
local M = {
  name = "test",
  summary = "run the Lua tests under a folder",
  description = "Finds *_test.lua under each PATH and runs every function whose name starts with test. "
      .. "After each test nothing may be left: no fiber, no operation, no descriptor, no child process.",
  arguments = { { "path", "a folder or a test file", args = "+" } },
  options = {
    { "-k --only", "TEXT", "run only the tests whose name contains TEXT" },
    { "--timeout-s", "SECONDS", "a test that takes longer fails", number = true, default = 60 },
    { "-q --quiet", "print failures and the last line only" },
  },
}

function M.run(args)
  local runner = require "agentbox.test"
  local failed, err = runner.run(args.path, {
    only = args.only, timeout_s = args.timeout_s, quiet = args.quiet,
  })
  if not failed then return nil, err end
  return failed == 0 and 0 or 1
end

return M

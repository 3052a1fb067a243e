local lu = require "luaunit"
local test = require "agentbox.test"

local M = {}

local function shout()
  return require("agentbox.tool").define {
    api = 1, name = "shout", description = "Shout.", parameters = { { "word", "string", "what" } },
    open = function() return { n = 0 } end,
    run = function(ctx, args, state)
      state.n = state.n + 1
      assert(ctx.sandbox:write("said.txt", args.word))
      return ("%s %d"):format(args.word:upper(), state.n)
    end,
  }
end

function M.test_a_tool_runs_as_in_a_rollout()
  local first, second, third = test.tool(shout(), { { word = "hey" }, { word = "ho" }, { wrod = "x" } })
  lu.assertEquals(first.text, "HEY 1")
  lu.assertFalse(first.is_error)
  lu.assertEquals(second.text, "HO 2")
  lu.assertTrue(third.is_error)
  lu.assertStrContains(third.text, "word")
end

function M.test_a_built_in_tool_by_name()
  local result = test.tool("read_file", { path = "a.txt" }, { files = { ["a.txt"] = "inside\n" } })
  lu.assertStrContains(result.text, "inside")
end

function M.test_a_tool_that_raises_shows_its_traceback()
  local result = test.tool(require("agentbox.tool").define {
    api = 1, name = "bad", description = "x", run = function() error "boom" end,
  }, {})
  lu.assertTrue(result.is_error)
  lu.assertStrContains(result.traceback, "boom")
end

function M.test_a_verifier_scores_what_an_agent_left()
  local function verifier() return 0.5, "half" end
  local t = test.verifier(verifier, { files = { ["a.txt"] = "x" } })
  lu.assertTrue(t.scored)
  lu.assertEquals(t.reward, 0.5)
end

function M.test_an_agent_over_a_script()
  local t = test.agent(nil, {
    files = { ["a.txt"] = "x" }, turns = { { tool_calls = { { name = "read_file", arguments = { path = "a.txt" } } } }, "done" },
  })
  lu.assertEquals(t.final_status, "success")
  lu.assertEquals(t.metrics.steps, 1)
end

function M.test_unknown_options_are_refused()
  test.raises("unknown", test.verifier, "command", { fiels = {} })
end

function M.test_assertions()
  test.eq({ a = { 1, 2 } }, { a = { 1, 2 } })
  test.raises("expected { a = 2 }", test.eq, { a = 1 }, { a = 2 })
  test.raises("expected something true", test.ok, false)
  test.raises("is not in", test.contains, "abc", "x")
  test.raises('expected nil and an error "io"', test.fails, "io", 1)
  test.raises('expected the error code "io"', test.fails, "io", nil, { code = "x" })
  test.fails("io", nil, { code = "io" })
end

return M

local lu = require "luaunit"
local prompt = require "agentbox.prompt"

local M = {}

local function build(fields)
  fields.task = fields.task or { description = "Do it." }
  fields.workspace = fields.workspace or "/workspace"
  return assert(prompt.build(fields))
end

function M.test_task_is_the_user_message_verbatim()
  local messages = build { task = { description = "--help me\n{x}" } }
  lu.assertEquals(messages[2], { role = "user", content = "--help me\n{x}" })
  lu.assertStrContains(messages[1].content, "/workspace")
end

function M.test_override_fills_one_name_and_nothing_else()
  local messages = build { system_prompt = 'Use {workspace_dir}, keep {"a": {}} and %d.', workspace = "/w%1" }
  lu.assertEquals(messages[1].content, 'Use /w%1, keep {"a": {}} and %d.')
end

function M.test_extra_text_follows_after_a_blank_line()
  local messages = build { system_prompt = "Base. \n", task = { description = "d", system_prompt_extra = "\n More. " } }
  lu.assertEquals(messages[1].content, "Base.\n\nMore.")
end

function M.test_shell_prompt_and_unknown_names()
  lu.assertStrContains(build({ name = "shell" })[1].content, "run_command")
  local got, err = prompt.build { task = { description = "" }, workspace = "/w", name = "nope" }
  lu.assertNil(got)
  lu.assertEquals(err.code, "config")
end

return M

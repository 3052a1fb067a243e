--- A suite whose every value is odd in some way that its canonical text must get right: numbers as Python prints them,
--- letters beyond ASCII, control characters, orders of keys. Written as text, so that nothing of ours shapes it.
local fs = require "agentbox.fs"

local M = {}

--- What the Python AgentBox 0.2.1 makes of it (tests/peers/agentbox_suite.sh asks it again).
M.CONTENT_HASH = "eb0e018ae4a39e04e180d7a0497fa40baff126947305d2cc851541006063311b"

local SUITE = [[{
  "suite_id": "odd", "name": "Odd", "version": "2.0", "seed": null, "n_per_task": 3, "concurrency": 2,
  "sandbox": {"image": "host", "env": {"Z": "1", "Ä": "ü", "a": "\u2028"}, "labels": {"b": "2", "a": "1"},
    "limits": {"cpu_count": 2, "memory_mb": null, "network_disabled": false, "memswap_mb": 7}},
  "agent": {"tools": ["write_file", "run_command"], "max_steps": 7, "step_timeout_s": 1e-7, "episode_timeout_s": 1e16,
    "step_penalty": 0.1, "drop_tools_prob": 0.5, "system_prompt": "Tab\there \"quoted\" \\ / \u007f \u0001 é 😀"},
  "scoring": {"setup_checks": [{"name": "c", "command": "true", "timeout_s": 5}]},
  "metadata": {"note": "free"}, "unknown_to_both": 1
}]]

local TASKS = {
  ["b"] = [[{"task_id": "b", "description": "Zwei\nZeilen \u00e9", "setup_commands": ["true"], "starter_files": {"z.txt": "", "a/ü.txt": "ü\r\n"},
    "verifier": {"type": "test", "timeout_s": 30, "reward_success": 2, "reward_failure": -1},
    "metadata": {"small": 1e-7, "big": 1e16, "bigger": 1e22, "odd": 123456.789, "minus": -0.0, "whole": 100.0, "int": 100,
      "huge": 123456789012345678901234567890, "near": 0.0001, "third": 0.3333333333333333, "list": [1, 1.5, null, true, [], {}],
      "Ωmega": {"b": 1, "a": 2, "B": 3}, "": "empty key"},
    "system_prompt_extra": "", "allowed_tools": [], "max_steps": 0}]],
  ["A"] = [[{"task_id": "A", "description": "", "verifier": {"command": "test -e \"x\"", "success_exit_code": 3}}]],
}

--- Writes it into a folder.
---@async
---@param dir string
function M.write(dir)
  assert(fs.mkdir(dir .. "/tasks", true))
  assert(fs.write(dir .. "/suite.json", SUITE))
  for name, text in pairs(TASKS) do
    assert(fs.mkdir(("%s/tasks/%s/files/sub"):format(dir, name), true))
    assert(fs.write(("%s/tasks/%s/task.json"):format(dir, name), text))
    assert(fs.write(("%s/tasks/%s/files/sub/x.py"):format(dir, name), "def f():\n    return '\xe2\x80\xa8'\n"))
  end
end

return M

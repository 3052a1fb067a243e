--- conform/processes.lua: commands that one talks to.
local fiber = require "agentbox.sys.fiber"

return {
  { id = "spawn.talk", what = "questions and answers with a program that goes on", run = function(t)
    local p <close> = t.truth(t.sb:spawn { "cat" }, "spawn")
    for i = 1, 20 do t.equal(p:ask(i .. "\n", { until_text = "\n", timeout_s = 10 }), i .. "\n", "echo") end
    p:close_stdin()
    t.equal(p:wait(10).exit_code, 0, "status after the end of stdin")
  end },
  { id = "spawn.streams", what = "stdout and stderr are told apart", run = function(t)
    local p <close> = t.truth(t.sb:spawn "echo a; echo b >&2; exit 5", "spawn")
    t.equal(p:read { until_text = "\n", timeout_s = 10 }, "a\n", "stdout")
    t.equal(p:read_stderr(10), "b\n", "stderr")
    local out = p:wait(10)
    t.equal(out.exit_code, 5, "status")
    t.truth(not p:running(), "it is over")
  end },
  { id = "spawn.flow", what = "a reader that is slow stops the program, and gets every byte", run = function(t)
    local p <close> = t.truth(t.sb:spawn("head -c 3000000 /dev/zero | tr '\\0' y", { max_output_bytes = 65536 }), "spawn")
    local total = 0
    while true do
      local bytes = p:read { timeout_s = 20 }
      if not bytes then break end
      total = total + #bytes
    end
    t.equal(total, 3000000, "bytes read")
  end },
  { id = "spawn.flow-end", what = "what a program leaves unread when it ends can still be read", run = function(t)
    local p <close> = t.truth(t.sb:spawn("head -c 120000 /dev/zero | tr '\\0' z", { max_output_bytes = 65536 }), "spawn")
    for _ = 1, 500 do
      if not p:running() then break end
      fiber.sleep(0.02)
    end
    t.truth(not p:running(), "it has ended")
    local total = 0
    while true do
      local bytes = p:read { timeout_s = 20 }
      if not bytes then break end
      total = total + #bytes
    end
    t.equal(total, 120000, "bytes read")
  end },
  { id = "spawn.wait", what = "wait has a deadline of its own, kill ends it", run = function(t)
    local p <close> = t.truth(t.sb:spawn "sleep 300", "spawn")
    local out, problem = p:wait(0.1)
    t.equal(out, nil, "wait")
    t.code(problem, "timeout", "wait")
    p:kill()
    t.equal(t.truth(p:wait(30), "wait after kill").signal, "SIGKILL", "signal")
  end },
  { id = "spawn.timeout", what = "timeout_s ends a spawned program that nobody waits for", run = function(t)
    local p <close> = t.truth(t.sb:spawn("sleep 300", { timeout_s = 0.2 }), "spawn")
    local out = t.truth(p:wait(30), "wait")
    t.equal(out.timed_out, true, "timed_out")
  end },
  { id = "spawn.terminal", what = "a terminal: size, echo, and one stream", needs = "terminal", run = function(t)
    local p <close> = t.truth(t.sb:spawn("stty size; tty", { pty = true, rows = 33, cols = 77 }), "spawn")
    local text = p:read { until_text = "/pts/", timeout_s = 10 } or ""
    t.truth(text:find("33 77", 1, true), "the size inside: " .. text)
    p:wait(10)
  end },
  { id = "spawn.terminal-resize", what = "a terminal that changes its size tells the program", needs = "terminal",
    run = function(t)
    local script = "trap 'stty size; exit 7' WINCH; echo ready; while :; do sleep 0.1; done"
    local p <close> = t.truth(t.sb:spawn(script, { pty = true }), "spawn")
    t.truth(p:read { until_text = "ready", timeout_s = 10 }, "it runs")
    p:resize(51, 203)
    local text = p:read { until_text = "51 203", timeout_s = 10 }
    t.truth(text, "the new size inside")
    t.equal(t.truth(p:wait(10), "wait").exit_code, 7, "status")
  end },
  { id = "spawn.terminal-keys", what = "what is typed: Ctrl-C interrupts, Ctrl-D ends", needs = "terminal", run = function(t)
    local p <close> = t.truth(t.sb:spawn({ "sh" }, { pty = true, env = { PS1 = "" } }), "spawn")
    t.truth(p:ask("trap 'echo caught' INT; sleep 300; echo st=$?\n", { until_text = "st=$?\r\n", timeout_s = 10 }), "echo")
    -- Not before the program it is for has the terminal: until then the shell alone would hear it.
    for _ = 1, 500 do
      if t:sh("grep -l '^sleep' /proc/[0-9]*/comm 2>/dev/null").stdout ~= "" then break end
      fiber.sleep(0.02)
    end
    t.truth(p:ask("\3", { until_text = "caught", timeout_s = 10 }), "Ctrl-C")
    t.truth(p:ask("echo a''b; exit 3\n", { until_text = "ab", timeout_s = 10 }), "the shell goes on")
    t.equal(t.truth(p:wait(10), "wait").exit_code, 3, "status")
    local cat <close> = t.truth(t.sb:spawn({ "cat" }, { pty = true }), "spawn")
    t.truth(cat:ask("x\n", { until_text = "x\r\nx\r\n", timeout_s = 10 }), "echo, then cat")
    t.truth(cat:write "\4", "Ctrl-D")
    t.equal(t.truth(cat:wait(10), "wait").exit_code, 0, "status at the end of input")
  end },
  { id = "spawn.terminal-close", what = "who gives the handle up ends all that ran at the terminal", needs = "terminal",
    run = function(t)
    local p = t.truth(t.sb:spawn("trap '' HUP TERM; sleep 298 & echo on; sleep 299", { pty = true }), "spawn")
    t.truth(p:read { until_text = "on", timeout_s = 10 }, "it runs")
    p:close()
    local left
    for _ = 1, 500 do
      left = t:sh("grep -l '^sleep' /proc/[0-9]*/comm 2>/dev/null").stdout
      if left == "" then break end
      fiber.sleep(0.02)
    end
    t.equal(left, "", "what is left")
  end },
  { id = "spawn.terminal-flood", what = "a terminal that nobody reads keeps the head and drops the rest", needs = "terminal",
    run = function(t)
    local p <close> = t.truth(t.sb:spawn("head -c 600000 /dev/zero | tr '\\0' z; exit 4", { pty = true, max_output_bytes = 5000 }),
      "spawn")
    local out = t.truth(p:wait(60), "wait")
    t.equal(out.exit_code, 4, "status")
    t.equal(#out.stdout, 5000, "kept")
    t.equal(out.stdout_dropped, 595000, "dropped")
  end },
  { id = "exec.on_output", what = "output is shown as it comes, and kept", run = function(t)
    local seen = {}
    local out = t:sh("echo one; sleep 0.2; echo two >&2", { on_output = function(chunk, stream) seen[#seen + 1] = stream .. chunk end })
    t.equal(table.concat(seen, "|"), "stdoutone\n|stderrtwo\n", "as it came")
    t.equal(out.stdout .. out.stderr, "one\ntwo\n", "kept")
  end },
}

--- conform/shells.lua: a shell that stays.
local function shell(t)
  return t.truth(t.sb:shell(), "shell")
end

local function run(t, sh, command, opts)
  return t.truth(sh:run(command, opts), "run")
end

return {
  { id = "shell.state", what = "directory, variables and functions stay; streams in order, status of each", run = function(t)
    local sh <close> = shell(t)
    t.equal(run(t, sh, "mkdir -p d; cd d; x='it''s'; f() { echo \"f $1\"; return 5; }; export y=2").output, "", "silence")
    local out = run(t, sh, "basename \"$PWD\"; echo $x >&2; sh -c 'echo $y'; f 3")
    t.equal(out.output, "d\nits\n2\nf 3\n", "output")
    t.equal(out.exit_code, 5, "status")
    t.equal(run(t, sh, "cat; echo $?").output, "0\n", "stdin is empty")
    t.equal(run(t, sh, "break; continue; printf 'no newline'").output:match "[^\n]*$", "no newline", "the last line")
  end },
  { id = "shell.incomplete", what = "an open quote, heredoc or bracket is answered at once", run = function(t)
    local sh <close> = shell(t)
    for _, command in ipairs { "echo 'abc", 'echo "abc', "if true; then", "echo $((1", "f() {", "x=$(echo", "echo `date", "(" } do
      local out = run(t, sh, command, { timeout_s = 20 })
      t.truth(out.exit_code ~= 0 and not out.timed_out and not out.ended, "it is an error, and the shell goes on: " .. command)
    end
    sh:close() -- bash 5.2 may stumble over its own memory after such a series: another shell for the rest
    t.equal(run(t, sh, "cat <<'X'\na 'quoted' $x\nX\n").output, "a 'quoted' $x\n", "a heredoc")
    t.truth(run(t, sh, "cat <<X\nhello").output:find("hello", 1, true), "a heredoc without its end")
    t.equal(run(t, sh, "# only a comment").exit_code, 0, "a comment")
    t.equal(run(t, sh, "").exit_code, 0, "nothing")
  end },
  { id = "shell.forgery", what = "what a command prints is never taken for its end", run = function(t)
    local sh <close> = shell(t)
    -- The mark of one command, shown by the next: it is no longer one.
    local first = run(t, sh, "printf '\\000%s 0\\000' 12345678-1234-4234-8234-123456789abc; echo rest; false")
    t.equal(first.output, "\00012345678-1234-4234-8234-123456789abc 0\0rest\n", "bytes")
    t.equal(first.exit_code, 1, "status")
    t.equal(run(t, sh, "printf() { echo mine; }; true").exit_code, 0, "a function of that name")
    run(t, sh, "eval() { echo mine; }") -- a shell may refuse it: then it is an error of syntax
    t.equal(run(t, sh, "echo on").output, "on\n", "the shell goes on")
  end },
  { id = "shell.timeout", what = "a command whose time is over is dead with what it started; the shell and older jobs live",
    needs = "tree", run = function(t)
    local sh <close> = shell(t)
    run(t, sh, "z=kept; sleep 297 & echo")
    t:sh "sleep 0.3"
    local out = run(t, sh, "echo begun; sh -c 'sleep 298 & sleep 299'", { timeout_s = 2 }) -- on a busy machine too it has begun by then
    t.equal(out.output:sub(1, 6), "begun\n", "what it printed") -- and the shell may say who was killed
    t.equal(out.timed_out, true, "timed_out")
    t.equal(out.exit_code, -1, "status")
    t.equal(out.ended, false, "the shell lives")
    t.equal(run(t, sh, "echo $z").output, "kept\n", "its state")
    t.equal(t:sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep 29[0-9]' | sort -u").stdout, "sleep 297\n",
      "what runs")
    out = run(t, sh, "while :; do :; done", { timeout_s = 0.3 })
    t.equal(out.ended, true, "a shell that does not come back is ended")
    t.equal(run(t, sh, "echo ${z:-new}").output, "new\n", "and another one is there")
  end },
  { id = "shell.exit", what = "exit ends the shell with its status, and the next command gets a new one", run = function(t)
    local sh <close> = shell(t)
    local out = run(t, sh, "a=1; echo bye; exit 7")
    t.equal(out.output .. out.exit_code, "bye\n7", "its end")
    t.equal(out.ended, true, "ended")
    t.equal(run(t, sh, "echo ${a:-none}").output, "none\n", "a new one")
    t.equal(run(t, sh, "kill -9 $$").exit_code, 137, "killed by its own command")
    t.equal(run(t, sh, "echo on").output, "on\n", "a new one")
  end },
  { id = "shell.flood", what = "the head of much output is kept, the rest counted", run = function(t)
    local sh <close> = shell(t)
    local out = run(t, sh, "head -c 3000000 /dev/zero | tr '\\0' q; exit_() { return 3; }; exit_", { max_output_bytes = 1000 })
    t.equal(#out.output, 1000, "kept")
    t.equal(out.dropped, 2999000, "dropped")
    t.equal(out.exit_code, 3, "status")
    out = run(t, sh, "while :; do echo flood; done", { timeout_s = 0.5, max_output_bytes = 10 })
    t.equal(out.output, "flood\nfloo", "the head of a flood without end")
    t.equal(out.timed_out, true, "timed_out")
  end },
  { id = "shell.script", what = "long commands, commands that read, traps, descriptors, IFS: nothing comes between", run = function(t)
    local sh <close> = shell(t)
    local long = ("line\n"):rep(20000)
    t.equal(run(t, sh, "cat <<'X' | wc -c\n" .. long .. "X").output:match "%d+", "100000", "a long heredoc")
    t.equal(run(t, sh, "trap 'echo got' USR1; cat; (cat); echo x | cat; sh -c cat; read l; echo \"$?[$l]\"").output, "x\n1[]\n", "readers")
    local pid = run(t, sh, "IFS=0123456789abcdef; echo \"$$\"").output:match "%d+"
    t:sh("kill -USR1 " .. pid) -- while it waits
    t.equal(run(t, sh, "unset IFS; exec 3>f 4>&3 5>&3 9>lock; echo on; false").exit_code, 1, "status")
    t.equal(run(t, sh, "echo a; cat f; echo b").output, "a\nb\n", "the shell goes on")
  end },
  { id = "shell.jobs", what = "background jobs hold nothing up, and what they print comes later", run = function(t)
    local sh <close> = shell(t)
    t.equal(run(t, sh, "(while [ ! -e go ]; do sleep 0.05; done; echo late) & echo early", { timeout_s = 20 }).output, "early\n", "at once")
    t.equal(run(t, sh, "touch go; wait; echo over", { timeout_s = 20 }).output, "late\nover\n", "the job's output")
  end },
}

Usage errors: one line with the cause, one with the next step, exit 2.

$ agentbox versoin
agentbox: unknown command 'versoin', did you mean 'version'?
Try 'agentbox --help' for more information.
[exit 2]

$ agentbox --vresion
agentbox: unknown option '--vresion', did you mean '--version'?
Try 'agentbox --help' for more information.
[exit 2]

$ agentbox traj shwo x
agentbox: traj: unknown command 'shwo', did you mean 'show'?
Try 'agentbox traj --help' for more information.
[exit 2]

$ agentbox run --max-stpes 3 x
agentbox: run: unknown option '--max-stpes', did you mean '--max-steps'?
Try 'agentbox run --help' for more information.
[exit 2]

$ agentbox run --max-steps=three x
agentbox: run: --max-steps must be a whole number (not 'three')
Try 'agentbox run --help' for more information.
[exit 2]

$ agentbox run x --max-steps
agentbox: run: option '--max-steps' needs a value
Try 'agentbox run --help' for more information.
[exit 2]

$ agentbox run
agentbox: run: missing argument 'task'
Try 'agentbox run --help' for more information.
[exit 2]

$ agentbox test a_test.lua --quiet=yes
agentbox: test: option '--quiet' does not take arguments
Try 'agentbox test --help' for more information.
[exit 2]

Help goes to stdout and is a success.

$ agentbox run --help 2>/dev/null
Usage: agentbox run <*>
...
   -h, --help <*>
...
[exit 0]

$ agentbox help traj 2>/dev/null
Usage: agentbox traj <command> [options]
...
   show <*>
...
[exit 0]

$ agentbox 2>/dev/null
Usage: agentbox [-L DIR] <command> [options]
...
[exit 0]

$ agentbox version
0.1.0
[exit 0]

$ agentbox --version
0.1.0
[exit 0]

Output that does not arrive is an error; a reader that went away is not.

$ agentbox version > /dev/full
agentbox: cannot write to standard output: No space left on device
[exit 3]

$ { agentbox lua list; echo "exit $?" >&2; } | head -1
agentbox                                 builtin
exit 0
[exit 0]

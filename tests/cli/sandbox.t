A shell in a sandbox, commands from a file: its status is theirs, its end is the sandbox's.

$ printf 'cd /tmp; pwd; echo bad >&2\nf() { echo "$1"; }; f two; exit 4\n' | agentbox sandbox shell --name mine 2>err; s=$?; cat err; exit $s
/tmp
two
sandbox mine: agentbox sandbox exec mine -- COMMAND, from elsewhere
bad
[exit 4]

One that is kept, and used from elsewhere; all of it is over when its owner ends.

$ export XDG_RUNTIME_DIR=$PWD; agentbox sandbox shell --hold --name keep 2>log & until agentbox sandbox exec keep -- true 2>/dev/null; do :; done; export XDG_RUNTIME_DIR=$PWD
> agentbox sandbox ps | awk '{ print $1, $2, $3 }'
> agentbox sandbox ps --json | python3 -c 'import json, sys; d = json.loads(sys.stdin.read()); print(d["backend"], d["image"], d["workspace"])'
> agentbox sandbox exec keep -- sh -c 'echo out; echo err >&2; echo x > new; rm /etc/hosts; exit 3'; echo status $?
> head -c 200000 /dev/zero | agentbox sandbox exec --stdin keep -- sh -c 'cat | wc -c; pwd'
> agentbox sandbox exec --cwd /tmp keep -- pwd
> agentbox sandbox diff keep
> agentbox sandbox exec --timeout 0.2 keep -- sleep 60; echo status $?
> agentbox sandbox shell --name keep < /dev/null 2>&1 | sed 's/process [0-9]*/process N/'
> agentbox sandbox rm keep; echo status $?
> agentbox sandbox ps; wait; ls agentbox-sandboxes
NAME BACKEND IMAGE
keep native host
native host /workspace
out
err
status 3
200000
/workspace
/tmp
removed  /etc/hosts
added    /workspace/new
agentbox: the command did not end within N s
status 3
agentbox: a sandbox named keep is there, process N has it
ended keep
status 0
NAME<*>PROCS
[exit 0]

Whoever leaves a command ends it, and a killed owner takes its sandbox with it:

$ export XDG_RUNTIME_DIR=$PWD; agentbox sandbox shell --hold --name gone 2>log & p=$!; until agentbox sandbox exec gone -- true 2>/dev/null; do :; done
> agentbox sandbox exec gone -- sh -c 'echo started; sleep 61' > out & e=$!; agentbox sandbox exec gone -- sh -c 'until pgrep -f "sleep 6[1]" > /dev/null; do :; done'
> kill -9 $e; cat out; agentbox sandbox exec gone -- sh -c 'while pgrep -f "sleep 6[1]" > /dev/null; do :; done; echo ended too'
> kill -9 $p; wait $p $e 2>/dev/null; agentbox sandbox exec gone -- true; echo status $?; agentbox sandbox ps; ls agentbox-sandboxes
started
ended too
...
agentbox: no sandbox named gone
agentbox sandbox ps
status 2
NAME<*>PROCS
[exit 0]

$ agentbox sandbox run --allow bad..x -- true
agentbox: sandbox run: network.allow: 'bad..x': <*>
Try 'agentbox sandbox run --help' for more information.
[exit 2]

$ agentbox sandbox run --allow example.org:443 --network full -- true
agentbox: sandbox run: --allow is a network of its own: no --network with it
Try 'agentbox sandbox run --help' for more information.
[exit 2]

$ agentbox sandbox run --allow example.org:443 -- bash -c ': < /dev/tcp/192.0.2.7/80' 2>&1 | grep -o refused | head -n 1
refused
[exit 0]

$ agentbox sandbox shell --name -x < /dev/null
agentbox: sandbox shell: --name wants letters, digits, and . _ -
Try 'agentbox sandbox shell --help' for more information.
[exit 2]

$ agentbox sandbox exec nobody
agentbox: sandbox exec: <*>
Try 'agentbox sandbox exec --help' for more information.
[exit 2]

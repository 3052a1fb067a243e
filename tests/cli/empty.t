What is empty where something has to be named: one line, exit 2.

$ mkdir t && echo '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' > t/task.json && agentbox run t -o saved > /dev/null
[exit 0]

$ bad() { agentbox "$@" > out 2>&1; s=$?; head -1 out; [ $s = 2 ] || echo "$*: exit $s"; ! grep -q traceback out || echo "$*: a traceback"; }
> bad run ''; bad run t -o ''; bad run t -m ''; bad run t -m scripted:; bad run t -m replay:; bad run t --image ''; bad run t --backend ''; bad run t --agent ''; bad run t --verifier ''; bad run t --tool ''; bad -L '' version
agentbox: task: the path is empty
agentbox: an empty path
agentbox: run: --model is empty
agentbox: run: --model scripted: lacks the file's name
agentbox: run: --model replay: lacks the file's name
agentbox: sandbox.image: is empty
agentbox: run: no sandbox backend ''; <*>
agentbox: unknown agent:<*>
agentbox: unknown verifier:<*>
agentbox: an empty path
agentbox: an empty path
[exit 0]

$ bad() { agentbox "$@" > out 2>&1; s=$?; head -1 out; [ $s = 2 ] || echo "$*: exit $s"; ! grep -q traceback out || echo "$*: a traceback"; }
> bad export '' -o x; bad export saved -o ''; bad traj show ''; bad traj check ''; bad test ''; bad lua check ''; bad script ''; bad run-dir ''; bad run-dir t -o '' -m mock; bad ''
agentbox: an empty path
agentbox: an empty path
agentbox: an empty path
agentbox: an empty path
agentbox: an empty path
agentbox: an empty path
agentbox: script: cannot open<*>
agentbox: an empty path
agentbox: an empty path
agentbox: unknown command ''
[exit 0]

A run for a trainer: begun when its folder is not there, gone on with otherwise. Here nobody takes the groups, so they stay.

$ mkdir -p tasks/one; echo '{"task_id": "one", "description": "d", "verifier": {"command": "true"}}' >tasks/one/task.json; echo '["done"]' >done.json
[exit 0]

$ agentbox serve runs/g --tasks tasks --last -m scripted:done.json --group-size 2 --listen unix:door --backend none >out 2>err & until curl -sf --unix-socket door http://localhost/v1/status | grep -q '"state":"over"'; do kill -0 $! || exit 1; done; curl -s --unix-socket door -X POST -d '{}' http://localhost/v1/connect | grep -o '"schema":"[^"]*"'; kill -TERM $!; wait $!; echo $?; cat runs/g/groups.jsonl | wc -l; test -e door || echo no door
"schema":"agentbox.serve/1"
130
1
no door
[exit 0]

A trainer takes them, three times through the folder; killed and begun again the engine knows how often.

$ agentbox serve runs/e --tasks tasks --epochs 3 --last -m scripted:done.json --group-size 2 --max-lead 1 --listen unix:door --backend none >out 2>err & first=$!; until curl -sf --unix-socket door http://localhost/v1/status | grep -q '"closed":[1-3]'; do kill -0 $first || exit 1; done; kill -9 $first; wait $first 2>/dev/null; agentbox serve runs/e -m scripted:done.json --listen unix:door --backend none >out 2>err &
> PYTHONPATH=$SRC/python/agentbox/src python3 -c '
> import agentbox
> with agentbox.connect("unix:door") as door:
>     for group in door.groups():
>         print(group.seq, group.task_id, len(group.members))
>         group.ack()'; wait $!; echo $?
1 one 2
2 one 2
3 one 2
0
[exit 0]

$ agentbox serve runs/g --listen 0.0.0.0:0 -m scripted:done.json --backend none 2>&1 | tail -1
agentbox: listening on 0.0.0.0:0 needs a token, as others can reach it: set AGENTBOX_TOKEN (from Lua: token)
[exit 0]

$ agentbox serve runs/g --group-size 1
agentbox: serve: --group-size must be at least 2, not 1
Try 'agentbox serve --help' for more information.
[exit 2]

A trainer gets one group of a task: one that goes on has the size that it had.

$ agentbox serve runs/g --group-size 4 -m scripted:done.json --backend none; wc -l <runs/g/groups.jsonl
agentbox: serve: the run's groups have 2 rollouts, not 4
Leave --group-size out to go on, or begin another run.
1
[exit 0]

$ agentbox run-dir --resume runs/g
agentbox: runs/g: not a run of run-dir
Try 'agentbox run-dir --help' for more information.
[exit 2]

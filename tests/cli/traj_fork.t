A turn of a stored trajectory is gone on from, in a sandbox with the files as they were.

$ cat > s.json <<'END'
> [{"tool_calls":[{"name":"run_command","arguments":{"command":"echo one > one; ls one"}}]},
>  {"tool_calls":[{"name":"run_command","arguments":{"command":"cat one; echo two > two"}}]}, "done"]
> END
[exit 0]

$ mkdir t; echo '{"task_id": "t", "description": "d", "verifier": {"type": "command", "command": "test -e one -a -e two"}}' > t/task.json
[exit 0]

$ agentbox run t -m scripted:s.json -o runs
status=success reward=1.0 steps=2
saved <*>
[exit 0]

$ agentbox traj fork runs/*/ --task t --turn 1 --n 2 -m scripted:s.json -o forks | grep -v saved | sort
<*>.1-1 status=success reward=1.0 steps=1
<*>.1-2 status=success reward=1.0 steps=1
[exit 0]

$ agentbox traj check forks | tail -n 1
trajectories=2 groups=0 problems=0
[exit 0]

The mock answers at once, and only one of the files is there.

$ agentbox traj fork runs/*/ --task t --turn 1 -o more
<*>.1-1 status=failed reward=0.0 steps=0
saved <*>
[exit 1]

$ agentbox traj fork runs/*/ --task t --turn 7
agentbox: turn 7 was not reached again: <*>
[exit 2]

$ agentbox traj fork runs/*/ --turn 1
agentbox: traj fork: option '--task' is required
Try 'agentbox traj fork --help' for more information.
[exit 2]

$ agentbox traj fork runs/*/ --task t
agentbox: traj fork: option '--turn' is required: 0 or more
Try 'agentbox traj fork --help' for more information.
[exit 2]

$ agentbox traj fork runs/*/ --task t --turn 1 --n 0
agentbox: traj fork: --n must be from 1 to 10000
Try 'agentbox traj fork --help' for more information.
[exit 2]

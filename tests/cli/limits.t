What the process was not given is infrastructure: one line that says what, exit 3, nothing lost that was done.

$ mkdir t && echo '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' > t/task.json
[exit 0]

$ for n in 7 10 12 14; do (ulimit -n $n; agentbox run t -o out; [ $? = 3 ] || echo "$n: not 3"); done 2>&1 | grep -v 'Make room'
agentbox: event loop: Too many open files
agentbox: t/task.json: open t/task.json: Too many open files
agentbox: cannot record into out: <*>: Too many open files
agentbox: cannot record ID into out/ID: <*>Too many open files
[exit 0]

A sandbox that can't be made for want of descriptors is recorded as that.

$ (ulimit -n 24; agentbox run t -o few)
agentbox: run: creating the sandbox: <*>: Too many open files
status=error reward=- steps=0
saved few/t_<*>.json
[exit 3]

$ agentbox traj check few && (ulimit -f 0; agentbox run t -o small; echo $?) 2>&1 | cat; ls small/*/*.json* 2> /dev/null
trajectories=1 problems=0
agentbox: cannot record into small: small/ID/run.json: write: File too large
Make room or permit it there, or name another folder with --out.
3
[exit 2]

Threads are needed; root is not limited by them.

$ drop=; [ $(id -u) != 0 ] || drop='setpriv --reuid=54321 --regid=54321 --clear-groups'; $drop bash -c 'ulimit -u 4; agentbox version'
agentbox: <*> of 8 threads could be started: raise the limit of processes (ulimit -u)
[exit 3]

Closed descriptors, and a reader or a disk that takes nothing: the work is done and saved.

$ agentbox run t -o closed <&- && agentbox run t -o closed >&- && agentbox run t -o closed 2>&- && agentbox run t -o closed <&- >&- 2>&-; echo $?; agentbox traj check closed
status=success reward=1.0 steps=0
saved closed/t_<*>.json
status=success reward=1.0 steps=0
saved closed/t_<*>.json
0
trajectories=4 problems=0
[exit 0]

$ agentbox run t -o full > /dev/full; agentbox run t -o full 2> /dev/full; (agentbox run t -o full; echo $? >&2) | true; agentbox traj check full
agentbox: cannot write to standard output: No space left on device
status=success reward=1.0 steps=0
saved full/t_<*>.json
0
trajectories=3 problems=0
[exit 0]

What the process was not given is infrastructure: one line that says what, exit 3, nothing lost that was done.

$ mkdir t && echo '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' > t/task.json
[exit 0]

Wherever descriptors run out:

$ for n in 7 8 9 10 11 12 13 14 15 16 18 20 22 24 28; do (ulimit -n $n; exec agentbox run t -o few) > log 2>&1; s=$?; [ $s = 0 ] || { [ $s = 3 ] && grep -q 'Too many open files' log; } || { echo "$n: $s"; cat log; }; done; ls few/*.json > /dev/null && agentbox traj check few | tail -1 | sed 's/=[1-9][0-9]*/=N/'
trajectories=N groups=0 problems=0
[exit 0]

No control group is left that nobody could tell whose it is:

$ ls -d /sys/fs/cgroup/agentbox-*-0 /sys/fs/cgroup/*/agentbox-*-0 2> /dev/null | cat
[exit 0]

$ (ulimit -f 0; agentbox run t -o small; echo $?) 2>&1 | cat; ls small/*/*.json* 2> /dev/null
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
<*>
trajectories=4 groups=0 problems=0
[exit 0]

$ agentbox run t -o full > /dev/full; agentbox run t -o full 2> /dev/full; (agentbox run t -o full; echo $? >&2) | true; agentbox traj check full
agentbox: cannot write to standard output: No space left on device
status=success reward=1.0 steps=0
saved full/t_<*>.json
0
<*>
trajectories=3 groups=0 problems=0
[exit 0]

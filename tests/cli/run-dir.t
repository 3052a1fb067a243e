A folder of tasks, many at once: each is saved as it ends, a run goes on where it was, and the end says what to make of it.

$ for t in one two three; do mkdir -p tasks/$t; echo "{\"task_id\": \"$t\", \"description\": \"d\", \"verifier\": {\"command\": \"test -f out\"}}" >tasks/$t/task.json; done; echo '[{"tool_calls": [{"name": "run_command", "arguments": {"command": "touch out"}}]}, "done"]' >solve.json
[exit 0]

$ agentbox run-dir tasks -m scripted:solve.json -c 2 --n 2 --run-id first 2>/dev/null
done: 6/6 success → trajectories
run       trajectories/first
rollouts  6 ended, 6 solved, 0 not solved, 0 unscored
reward    mean 1 over the 6 scored
time      <*>
model     12 calls
groups    3 closed: 3 whole, 0 partial, 0 dropped; 3 without signal (all outcomes the same)
peaks     rollouts 2/2, model calls <*>, creating <*>, commands <*>, judges <*>
trust     yes: every rollout ended with a score
[exit 0]

The same run again does nothing; a larger one does what is missing.

$ agentbox run-dir --resume first 2>/dev/null | head -3
done: 6/6 success → trajectories
run       trajectories/first
rollouts  6 ended, 6 solved, 0 not solved, 0 unscored; 6 of them before this resume
[exit 0]

$ agentbox run-dir --resume first 2>/dev/null | grep -e ^time -e ^model
time      <*> (since this resume)
model     0 calls (since this resume)
[exit 0]

$ agentbox run-dir --resume trajectories/first --n 4 --json 2>/dev/null | grep -c '"event":"rollout"'
6
[exit 0]

$ agentbox traj check trajectories/first | tail -1; agentbox traj check first | tail -1
trajectories=12 groups=6 problems=0
trajectories=12 groups=6 problems=0
[exit 0]

$ agentbox run-dir --resume first --max-steps 1
agentbox: run-dir: the run was made with other settings: agent.max_steps was 40, is 1
Begin a new run, or mix them knowingly with --allow-changes.
[exit 2]

$ agentbox run-dir tasks --run-id first
agentbox: cannot record into trajectories: run first is in trajectories already
Go on with it (--resume), or give the new one another --run-id.
[exit 2]

Not all solved is 1; what fails for no fault of the policy is told.

$ agentbox run-dir tasks --limit 2 2>/dev/null | grep -e done -e trust
done: 0/2 success → trajectories
trust     yes: every rollout ended with a score
[exit 0]

$ agentbox run-dir tasks --limit 2 >/dev/null 2>&1
[exit 1]

$ mkdir bad; echo '{"task_id": "poison", "description": "d", "setup_commands": ["exit 3"], "verifier": {"command": "true"}}' >bad/poison.json; echo '{"task_id": 3}' >bad/wrong.json; cp tasks/one/task.json bad/one.json; agentbox run-dir bad -m scripted:solve.json --n 3 -c 1 --quarantine 2 --run-id mixed
agentbox: bad task: task 3: bad/wrong.json: description: is missing
agentbox: quarantine: poison: setup command failed (exit code 3): exit 3<*>
done: 3/6 success → trajectories
run       trajectories/mixed
rollouts  6 ended, 3 solved, 0 not solved, 3 unscored
...
groups    2 closed: 1 whole, 0 partial, 1 dropped; 1 without signal (all outcomes the same)
peaks     <*>
trust     with care: 3 of 6 rollouts have no score (task 3); no mean counts them
          1 tasks could not be read: task 3: bad/wrong.json: description: is missing
          given up after repeated failures: poison
          1 groups were dropped
[exit 1]

What runs are there, and what happened in one.

$ agentbox ps trajectories | awk '$1 == "first" || $1 == "mixed" { print $1, $2 }' | sort
first over
mixed over
[exit 0]

$ agentbox tail mixed -n 2
<*> group 2 poison: 0 of 3, dropped: 0 of 3 members are scored, at least 2 are wanted
<*> over: 6 ended, 3 solved, 3 unscored
[exit 0]

Wrong words.

$ agentbox run-dir
agentbox: run-dir: a folder of tasks is needed
Try 'agentbox run-dir --help' for more information.
[exit 2]

$ mkdir empty; agentbox run-dir empty
agentbox: empty: no tasks here: neither folders with a task.json nor .json files
[exit 2]

$ agentbox run-dir nowhere
agentbox: open nowhere: No such file or directory
A folder of tasks is wanted: <*>
[exit 2]

$ agentbox run-dir tasks --n 6 --group-size 4
agentbox: runner: n (6) is not a multiple of group_size (4)
[exit 2]

$ agentbox run-dir tasks -c 0
agentbox: run-dir: --concurrency must be at least 1, not 0
Try 'agentbox run-dir --help' for more information.
[exit 2]

$ agentbox run-dir tasks --straggler-busy 9
agentbox: run-dir: --straggler-busy is about who --straggler gives up
give both
[exit 2]

$ agentbox run-dir --resume nothing
agentbox: no run 'nothing': neither a run's folder, nor a run below trajectories, nor one that goes on
See agentbox ps, or agentbox ps DIR for those that ended.
[exit 2]

$ agentbox tail nothing
agentbox: no run 'nothing': neither a run's folder, nor a run below trajectories, nor one that goes on
See agentbox ps, or agentbox ps DIR for those that ended.
[exit 2]

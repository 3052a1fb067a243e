Stored rollouts are judged again; the run that they are of stays as it was.

$ mkdir -p tasks/t && cat > tasks/t/task.json <<'EOF'
> {"task_id": "t", "description": "d", "verifier": {"command": "false"}, "artifacts": ["**"]}
> EOF
> echo '[{"tool_calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "done"}}]}, "I am done."]' > turns.json
> echo 'return require "agentbox".verify.files { { "a.txt", equals = "done" }, { "b.txt" } }' > files.lua
> echo 'return function(ev) return nil, "the judge is away" end' > away.lua
[exit 0]

$ agentbox run-dir tasks -m scripted:turns.json -o runs --run-id old 2>/dev/null | grep solved
rollouts  1 ended, 0 solved, 1 not solved, 0 unscored
[exit 0]

$ agentbox rescore runs/old --tasks tasks --verifier files.lua -o runs --run-id new
runs/new: 1 rollouts, 1 judged, 0 of them unscored
[exit 0]

$ agentbox traj list runs/new; agentbox traj list runs/old; agentbox traj check runs/new | tail -n 1
old/t/0  failed  reward=0.5  final_answer class=policy  task=t
old/t/0  failed  reward=0.0  final_answer class=policy  task=t
trajectories=1 groups=0 problems=0
[exit 0]

$ agentbox rescore runs/old --tasks tasks --verifier away.lua -o runs --run-id away
agentbox: rescore: the first: the judge is away
runs/away: 1 rollouts, 1 judged, 1 of them unscored
[exit 1]

$ agentbox rescore runs/old --verifier files.lua
agentbox: rescore: option '--tasks' is required
Try 'agentbox rescore --help' for more information.
[exit 2]

$ agentbox rescore runs/old --tasks tasks -o runs --run-id new
agentbox: <*>run new is in runs already<*>
[exit 2]

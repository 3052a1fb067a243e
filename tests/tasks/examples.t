The demo, as `make demo` runs it.

$ agentbox script $SRC/examples/demo.lua
9 tasks, model: scripted

task             status   reward steps  seconds
...
9 of 9 solved. Trajectories: runs/demo
Look at one: agentbox traj show runs/demo/<*>.json
[exit 0]

$ agentbox traj check runs/demo >/dev/null
[exit 0]

With broken answers nothing is solved.

$ BROKEN=1 agentbox script $SRC/examples/demo.lua $SRC/tasks broken | grep -c ' failed *0\.0 '
9
[exit 0]

$ BROKEN=1 agentbox script $SRC/examples/demo.lua $SRC/tasks broken >/dev/null
[exit 1]

$ agentbox script $SRC/examples/demo.lua $SRC/nowhere
demo: <*>nowhere: no such folder
[exit 2]

The other examples.

$ agentbox script $SRC/examples/hello_rollout.lua
...
status=success reward=1.0
[exit 0]

$ agentbox script $SRC/examples/custom_tool.lua
status=success reward=1.0
[exit 0]

$ agentbox run $SRC/tasks/fix_reverse --verifier $SRC/examples/verifiers/quality.lua
...
[exit 1]

$ cp $SRC/examples/agentbox.yaml . && agentbox config show | grep -c agentbox.yaml
<*>
[exit 0]

A group for ART.

$ agentbox script $SRC/examples/art_integration.lua 2>/dev/null; agentbox traj check runs/art; wc -l <runs/art/exchanges.jsonl
0 status=success reward=1.0 advantage=0.5
1 status=failed reward=0.0 advantage=-0.5
runs/art/messages.jsonl: 2 of 2 rollouts
runs/art/exchanges.jsonl: 2 of 2 rollouts
trajectories=2 problems=0
1
[exit 0]

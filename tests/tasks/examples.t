The demo, as `make demo` runs it.

$ agentbox script $SRC/examples/demo.lua
9 tasks, model: scripted

task             status   reward steps  seconds
...
9 of 9 solved. Trajectories: runs/demo
Look at one: agentbox traj show runs/demo/<*>.json
All of them as a page for your browser: runs/demo/demo.html
[exit 0]

$ agentbox traj check runs/demo >/dev/null
[exit 0]

With broken answers nothing is solved.

$ BROKEN=1 agentbox script $SRC/examples/demo.lua $SRC/tasks broken > out; echo exit $?; grep -c ' failed *0\.0 ' out
exit 1
9
[exit 0]

A real server, here one that gives up at once; its key is nowhere in what is written.

$ mkfifo port; python3 $SRC/tests/support/fakellm.py --watch-pid $$ --script '{"steps": ["I give up."]}' > port & read p < port
> API_KEY=sk-verysecret MODEL=fake BASE_URL=http://127.0.0.1:$p/v1 agentbox script $SRC/examples/demo.lua $SRC/tasks/sum_list real
> echo exit $?; grep -rc verysecret real | grep -v ':0$'
1 tasks, model: fake

task             status   reward steps  seconds
sum_list         failed      0.0     0 <*>

0 of 1 solved. Trajectories: real
Look at one: agentbox traj show real/sum_list_<*>.json
All of them as a page for your browser: real/demo.html
exit 1
[exit 1]

A server that is not there is an infrastructure failure, never a score.

$ MODEL=fake BASE_URL=http://127.0.0.1:1/v1 agentbox script $SRC/examples/demo.lua $SRC/tasks/sum_list
1 tasks, model: fake

task             status   reward steps  seconds
sum_list         error         -     0 <*>

0 of 1 solved. Trajectories: runs/demo
Look at one: agentbox traj show runs/demo/<*>.json
All of them as a page for your browser: runs/demo/demo.html
demo: sum_list: could not connect to 127.0.0.1:1: <*>
Try: agentbox doctor
[exit 3]

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
for training: 0 of 2; kept from it: 2 no token ids from the server
trajectories=2 groups=0 problems=0
1
[exit 0]

What docs/lua.md and the README show runs as it stands.

$ awk '/^```lua/ { n++; f = 1; next } /^```/ { f = 0 } f { print > ("lua" n ".lua") }' $SRC/docs/lua.md; agentbox script lua1.lua; agentbox script lua2.lua
0	42

1 2 3
nil	timeout
[exit 0]

$ awk '/^```lua/ { f = 1; next } /^```/ { f = 0 } f' $SRC/README.md > line_count.lua
> echo 'return { { tool_calls = { { name = "line_count", arguments = { path = "test_reverse.py" } } } }, "done" }' > model.lua
> agentbox run $SRC/tasks/fix_reverse --model scripted:model.lua --tool line_count.lua --out readme >out; cat readme/*.json | grep -o '27 test_reverse.py' | sort -u
27 test_reverse.py
[exit 0]

Ctrl-C at any moment: nothing of the rollout lives on, what was recorded is whole, exit 130.

$ cat > when.sh <<'EOF'
> # when MARK TASK...: interrupts a run of TASK once a process with MARK on its command line is there
> when() { mark=$1; shift; agentbox run "$@" -o out >stdout 2>stderr & pid=$!
>   until pgrep -f "^sleep $mark\$" >/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
>   kill -INT $pid; wait $pid; s=$?; cat stderr stdout; pgrep -f "^sleep $mark\$"; agentbox traj check out; return $s; }
> task() { mkdir -p $1; echo "{\"task_id\": \"$1\", \"description\": \"d\", $2}" > $1/task.json; }
> n=$$
> EOF
[exit 0]

While the task is set up.

$ . ./when.sh; task setup "\"setup_commands\": [\"sleep 8$n\"], \"verifier\": {\"command\": \"true\"}"; when 8$n setup
agentbox: run: interrupted; the sandbox is gone, what was recorded is saved
agentbox: run: stopped from outside
status=error reward=- steps=0
saved out/setup_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 130]

While a tool runs.

$ . ./when.sh; rm -r out; task tool '"verifier": {"command": "true"}'; echo "[{\"tool_calls\":[{\"name\":\"run_command\",\"arguments\":{\"command\":\"sleep 8$n\"}}]}]" > turns.json; when 8$n tool -m scripted:turns.json
agentbox: run: interrupted; the sandbox is gone, what was recorded is saved
agentbox: run: stopped from outside
status=error reward=- steps=0
saved out/tool_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 130]

While the work is judged.

$ . ./when.sh; rm -r out; task judged "\"verifier\": {\"command\": \"sleep 8$n\"}"; when 8$n judged
agentbox: run: interrupted; the sandbox is gone, what was recorded is saved
agentbox: run: stopped from outside
status=error reward=- steps=0
saved out/judged_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 130]

In a script.

$ . ./when.sh; echo "local sb <close> = assert(require('agentbox').sandbox.create()) sb:exec 'sleep 8$n'" > s.lua; agentbox script s.lua & pid=$!; until pgrep -f "^sleep 8$n\$" >/dev/null; do sleep 0.02; done; kill -INT $pid; wait $pid; s=$?; pgrep -f "^sleep 8$n\$"; (exit $s)
[exit 130]

While a script computes and waits for nothing.

$ echo 'print "on"; io.stdout:flush(); while true do end' > busy.lua; for s in INT TERM HUP; do agentbox script busy.lua >o 2>e & pid=$!; until grep -qs on o; do sleep 0.02; done; kill -$s $pid; wait $pid; echo "$s $?"; cat e; rm o; done
INT 130
TERM 130
HUP 130
[exit 0]

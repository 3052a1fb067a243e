Servers that misbehave: no score, one line with the cause, exit 3, and a whole record.

$ cat > serve.sh <<'EOF'
> # serve STEP: starts a server that says so; run: a rollout against it
> mkdir -p task; echo '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' > task/task.json
> serve() { mkfifo port; python3 $SRC/tests/support/fakellm.py --watch-pid $$ --script "{\"steps\": [$1]}" > port & read p < port; rm port; }
> run() { rm -rf out; agentbox run task -m m --base-url http://127.0.0.1:$p/v1 -o out "$@"; s=$?; agentbox traj check out; return $s; }
> EOF
[exit 0]

It refuses the connection.

$ . ./serve.sh; p=1; run --timeout-s 1
agentbox: run: could not connect to 127.0.0.1:1: <*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

It never answers.

$ . ./serve.sh; serve '{"hang": true}'; run --timeout-s 1
agentbox: run: <*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

It closes without an answer, and in the middle of one.

$ . ./serve.sh; serve '{"refuse": true}'; run --timeout-s 1
agentbox: run: <*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

$ . ./serve.sh; serve '{"content": "a long answer that is cut", "cut_after": 2}'; run --stream --timeout-s 1
agentbox: run: <*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

It sends a page, half of a JSON text, something that is no completion.

$ . ./serve.sh; serve '{"html": true}'; run --timeout-s 1
agentbox: run: <*>HTML<*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

$ . ./serve.sh; serve '{"half_json": true}'; run --timeout-s 1
agentbox: run: unusable reply: <*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

$ . ./serve.sh; serve '{"body": "[]"}'; run --timeout-s 1
agentbox: run: <*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

It is busy for ever; it says no.

$ . ./serve.sh; serve '{"status": 429}'; run --timeout-s 1
agentbox: run: <*>429<*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

$ . ./serve.sh; serve '{"status": 404, "error": "no such model"}'; run --timeout-s 1
agentbox: run: HTTP 404: no such model<*>
status=error reward=- steps=0
saved out/t_<*>.json
<*>
trajectories=1 groups=0 problems=0
[exit 3]

A server that is not there is told at once, not after all tries of the first rollouts.

$ mkdir -p many/t && echo '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' > many/t/task.json; agentbox run-dir many -m m --base-url http://127.0.0.1:1/v1 2>told >/dev/null & pid=$!; until grep -qs wait told || ! kill -0 $pid; do sleep 0.05; done; kill -TERM $pid; wait $pid; echo $?; head -1 told
130
agentbox: model: could not connect to 127.0.0.1:1: Connection refused; calls that wait to be made again: 1
[exit 0]

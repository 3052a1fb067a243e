One rollout: a line about its end, the saved file, and an exit status that says solved or not.

$ cp -r $SRC/tasks/fix_fizzbuzz . && python3 - <<'END'
> import json
> solution = open("fix_fizzbuzz/solution/fizzbuzz.py").read()
> write = {"name": "write_file", "arguments": {"path": "fizzbuzz.py", "content": solution}}
> json.dump([{"tool_calls": [write]}, "done"], open("solve.json", "w"))
> END
[exit 0]

$ agentbox run fix_fizzbuzz
status=failed reward=0.0 steps=0
saved trajectories/fix_fizzbuzz_<*>.json
[exit 1]

$ agentbox run -m scripted:solve.json -o out fix_fizzbuzz/task.json
status=success reward=1.0 steps=1
saved out/fix_fizzbuzz_<*>.json
[exit 0]

$ echo 'return function(request) return "seen " .. #request.messages end' > answer.lua; agentbox run -m lua:answer.lua -o out0 fix_fizzbuzz
status=failed reward=0.0 steps=0
saved out0/fix_fizzbuzz_<*>.json
[exit 1]

$ agentbox traj show out/fix_fizzbuzz_*.json
task=fix_fizzbuzz run=ID id=ID
status=success reward=1.0 stop=final_answer
steps=1 tool_calls=1 duration=N s
verify command: <*>
verify exit=0 success=true: 12 tests passed
...
last tools:
  step 0  write_file
[exit 0]

$ agentbox run -m replay:out -o out2 --json fix_fizzbuzz
{<*>"status":"success"<*>}
[exit 0]

$ agentbox export out -f jsonl -o out.jsonl -q && wc -l < out.jsonl && agentbox traj check out
out.jsonl
1
<*>
trajectories=1 groups=0 problems=0
[exit 0]

A model server, streamed and not; its key stays out of everything that is written.

$ cat > serve.sh <<'END'
> mkfifo port
> python3 $SRC/tests/support/fakellm.py --strict --token sk-good-key-1 --watch-pid $PPID --script "{\"steps\": $(cat solve.json)}" > port &
> read p < port; rm port
> END
[exit 0]

$ . ./serve.sh; OPENAI_API_KEY=sk-good-key-1 agentbox run -m m --base-url http://127.0.0.1:$p/v1 -o served fix_fizzbuzz
status=success reward=1.0 steps=1
saved served/fix_fizzbuzz_<*>.json
[exit 0]

$ . ./serve.sh; OPENAI_API_KEY=sk-good-key-1 agentbox run -m m --base-url http://127.0.0.1:$p/v1 -o served --stream fix_fizzbuzz
status=success reward=1.0 steps=1
saved served/fix_fizzbuzz_<*>.json
[exit 0]

$ . ./serve.sh; agentbox run -m m --base-url http://127.0.0.1:$p/v1 -o served --api-key sk-wrong-key fix_fizzbuzz
agentbox: run: HTTP 401: <*>
status=error reward=- steps=0
saved served/fix_fizzbuzz_<*>.json
[exit 3]

$ grep -rl -e sk-good-key-1 -e sk-wrong-key served | wc -l
0
[exit 0]

The configuration gives what no flag gives.

$ printf 'model: { model: "scripted:solve.json" }\nrun: { out: from-config }\n' > agentbox.yaml; agentbox run fix_fizzbuzz; s=$?; rm agentbox.yaml; exit $s
status=success reward=1.0 steps=1
saved from-config/fix_fizzbuzz_<*>.json
[exit 0]

A lab's tool and a lab's overlay take part.

$ cat > shout.lua <<'END'
> return require("agentbox.tool").define {
>   api = 1, name = "shout", description = "Shout.", parameters = { { "word", "string", "what" } },
>   run = function(_, args) return args.word:upper() end,
> }
> END
[exit 0]

$ echo '[{"tool_calls":[{"name":"shout","arguments":{"word":"hey"}}]},"done"]' > shout.json; agentbox run -m scripted:shout.json --tool shout.lua --tools custom -o out3 fix_fizzbuzz
status=failed reward=0.0 steps=1
saved out3/fix_fizzbuzz_<*>.json
[exit 1]

$ grep -o '"content": "HEY"' out3/fix_fizzbuzz_*.json
"content": "HEY"
[exit 0]

What is wrong with the input is found before anything starts: one line, exit 2, no folder.

$ agentbox run nowhere -o x
agentbox: nowhere: no such file or folder
[exit 2]

$ agentbox run fix_fizzbuzz -o x --tools read_fiel
agentbox: unknown tool: read_fiel (did you mean "read_file"?)
[exit 2]

$ agentbox run fix_fizzbuzz -o x --verifier nope
agentbox: unknown verifier: nope
A verifier is a module agentbox/verifiers/nope.lua in an overlay (agentbox -L DIR, lua_path in agentbox.yaml), or a file: --verifier FILE.lua.
[exit 2]

$ agentbox run fix_fizzbuzz -o x --agent nope
agentbox: unknown agent: nope
There are tool_loop, shell, oracle and idle; another one is a module, by its name with a dot, in an overlay (agentbox -L DIR, lua_path in agentbox.yaml).
[exit 2]

$ agentbox run fix_fizzbuzz -o x --backend nope
agentbox: run: no sandbox backend 'nope'; there is docker, native, none, podman
Try 'agentbox run --help' for more information.
[exit 2]

$ agentbox run fix_fizzbuzz -o x --memory-mb -5
agentbox: sandbox.limits.memory_mb must be at least 1, not -5 (flag --memory-mb)
[exit 2]

$ agentbox run fix_fizzbuzz -o x -m m --base-url localhost:8000
agentbox: model.base_url must begin with http:// or https://: localhost:8000
[exit 2]

$ agentbox run fix_fizzbuzz -o x -m scripted:none.json
agentbox: run: cannot read the script none.json: <*>
Try 'agentbox run --help' for more information.
[exit 2]

$ ls x
ls: cannot access 'x': No such file or directory
[exit 2]

Infrastructure that fails is no score: exit 3, and the record says why.

$ agentbox run fix_fizzbuzz -o out4 -m m --base-url http://127.0.0.1:1/v1 --timeout-s 1 --api-key sk-secret-key
agentbox: run: could not connect to 127.0.0.1:1: <*>
status=error reward=- steps=0
saved out4/fix_fizzbuzz_<*>.json
[exit 3]

$ grep -r sk-secret-key out4 | wc -l
0
[exit 0]

Ctrl-C cleans up, saves what was recorded and says so.

$ echo 'return { function() io.open("asked", "w"):close() return { content = "x", delay_s = 60 } end }' > slow.lua; agentbox run fix_fizzbuzz -m scripted:slow.lua -o out5 & pid=$!; until [ -e asked ]; do sleep 0.02; done; kill -INT $pid; wait $pid
agentbox: run: interrupted; the sandbox is gone, what was recorded is saved
agentbox: run: stopped from outside
status=error reward=- steps=0
saved out5/fix_fizzbuzz_<*>.json
[exit 130]

$ agentbox traj show out5 | head -2
task=fix_fizzbuzz run=ID id=ID
status=error reward=- stop=user_cancel<*>
[exit 0]

Closed standard descriptors are not taken for files of the run.

$ agentbox run fix_fizzbuzz -o out6 <&- >&- 2>&-
[exit 1]

$ agentbox run fix_fizzbuzz -o out7 >&-; grep -c status= out7/*/* | grep -v ':0$'
[exit 1]

What an author must know of a tool or a verifier that goes wrong is told at once, and shown.

$ echo "return require('agentbox.tool').define { api = 1, name = 'probe', description = 'd', parameters = {}, run = function() error 'boom' end }" > probe.lua; echo '[{"tool_calls": [{"name": "probe", "arguments": {}}]}, {"tool_calls": [{"name": "probe", "arguments": {}}]}, "done"]' > probe.json; mkdir -p slow && echo '{"task_id": "slow", "description": "d", "verifier": {"command": "sleep 60", "timeout_s": 0.3}}' > slow/task.json; agentbox run slow -o shown -m scripted:probe.json --tool probe.lua 2>&1 | head -2
agentbox: warn: the tool probe raised: probe.lua:1: boom (told once; the records have each with its traceback)
status=failed reward=0.0 steps=2
[exit 0]

$ agentbox traj show shown/slow_*.json | grep -v -e '^    ' -e ^task -e ^steps
status=failed reward=0.0 stop=final_answer class=policy
verify command: sleep 60
verify exit=-1 success=false: no result within <*> s
last tools:
  step 0  probe  error: probe.lua:1: boom
  step 1  probe  error: probe.lua:1: boom
[exit 0]

What a raise quotes of a model's words is told on one line, and not all of it.

$ echo "return require('agentbox.tool').define { api = 1, name = 'loud', description = 'd', parameters = {}, run = function() error('no' .. string.char(10) .. 'agentbox: warn: forged ' .. ('A'):rep(1e6)) end }" > loud.lua; echo '[{"tool_calls": [{"name": "loud", "arguments": {}}]}, "done"]' > loud.json; agentbox run slow -o loud -m scripted:loud.json --tool loud.lua 2>said >/dev/null; wc -l < said; cut -c 1-66 said; test $(wc -c < said) -lt 700 || wc -c said
1
agentbox: warn: the tool loud raised: loud.lua:1: no agentbox: war
[exit 0]

$ agentbox traj show shown/slow_*.json | grep -c 'stack traceback'
2
[exit 0]

$ echo 'return function() return { right = 1, small = 0.5 }, "looked at" end' > two.lua; agentbox run slow -o two --verifier two.lua >/dev/null; agentbox traj show two/slow_*.json | grep -e ^components -e ^verify
components right=1.0 (weight 0.5)  small=0.5 (weight 0.5)
verify exit=- success=false: looked at
[exit 0]

$ echo 'return function() return "good" end' > word.lua; agentbox run slow -o word --verifier word.lua 2>&1 | head -1
agentbox: run: the verifier gave the text "good": a number is wanted, true or false, or a table of named numbers
[exit 0]

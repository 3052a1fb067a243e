A trajectory that AgentBox wrote; the text in it comes from a model and may not steer the terminal.

$ cat > t.json <<'END'
> {"task_id": "fix_1", "run_id": "12345678-aaaa-4bbb-8ccc-1234567890ab", "model": "m", "final_status": "failed", "reward": 0.5,
>  "messages": [{"role": "user", "content": "do"}, {"role": "assistant", "content": "done \u001b[2J"}],
>  "metrics": {"steps": 3, "tool_calls": 1, "duration_s": 1.234}, "error": "bad \u001b]0;title\u0007 thing",
>  "tool_call_records": [{"step": 1, "tool_call_id": "k", "name": "run_command", "arguments": {}, "result": "x", "is_error": true}],
>  "metadata": {"verify_command": "pytest -q", "verify_exit_code": 1, "verify_success": false,
>    "verify_stdout": "1 failed \u001b[31mred\u001b[0m\n", "verify_stderr": ""}}
> END
[exit 0]

$ agentbox traj show t.json
task=fix_1 run=ID id=<*>
status=failed reward=0.5 stop=<*>
steps=3 tool_calls=1 duration=N s
verify command: pytest -q
verify exit=1 success=false
--- verify stdout
1 failed \x1b[31mred\x1b[0m
error: bad \x1b]0;title\x07 thing
last tools:
  step 1  run_command  error
[exit 0]

$ agentbox traj show t.json | grep -c "$(printf '\033')"
0
[exit 1]

$ agentbox traj show none.json
agentbox: <*>none.json<*>
[exit 2]

$ echo '{"a": 1' > bad.json; agentbox traj show bad.json
agentbox: <*>bad.json<*>
[exit 2]

Exports: the reference's default is art; a format nobody knows is a usage error; nothing is half written.

$ agentbox export t.json -o new/dir/t.art.json -q && head -c 2 new/dir/t.art.json
new/dir/t.art.json
{
[exit 0]

$ agentbox export t.json -f jsonl -o t.jsonl -q; wc -l < t.jsonl
t.jsonl
1
[exit 0]

$ agentbox export t.json -f xml -o t.xml
agentbox: unknown format xml; known: <*>
[exit 2]

$ agentbox export t.json
agentbox: export: option '--out' is required
Try 'agentbox export --help' for more information.
[exit 2]

$ agentbox export t.json -o x.json -O form=maybe
agentbox: form must be messages or exchanges, not maybe
[exit 2]

$ agentbox export t.json -o x.json -O nope=1
agentbox: format art has no option nope; it has form, min_group, tokens
[exit 2]

$ agentbox export t.json -o - -f trl; agentbox export t.json -o /dev/stdout | cat; ls ./- 2>/dev/null
agentbox: export: --out '-' is a stream; files get their names when they are whole, so name a file
Try 'agentbox export --help' for more information.
agentbox: export: --out '/dev/stdout' is a stream; files get their names when they are whole, so name a file
Try 'agentbox export --help' for more information.
[exit 2]

$ agentbox export missing.json -o x.json; ls x.json* 2>/dev/null
agentbox: <*>missing.json<*>
[exit 2]

$ agentbox export missing.json -o x.jsonl; ls x.json* 2>/dev/null
agentbox: <*>missing.json<*>
[exit 2]

What is stored can be checked.

$ agentbox run $SRC/tasks/sum_list -o out >/dev/null 2>&1; agentbox traj check out
for training: 0 of 1; kept from it: 1 no token ids from the server
trajectories=1 groups=0 problems=0
[exit 0]

$ sed -i 's/list/lust/' out/*/trajectories-00000.jsonl; agentbox traj check out
-: <*>trajectories-00000.jsonl:1: the line does not have its recorded sum (rule 12)
for training: 0 of 0
trajectories=0 groups=0 problems=1
[exit 1]

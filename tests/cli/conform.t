The whole suite leaves its verdict; trajectories made afterwards tell it.

$ mkdir t; echo '{"task_id": "t", "description": "d", "verifier": {"type": "command", "command": "true"}}' > t/task.json; cat > told.lua <<'END'
> local json = require "agentbox.json"
> for line in io.lines(arg[1]) do
>   local told = json.decode(line).sandbox.conform
>   print(told.verdict, told.at and "dated", told.cases and told.cases > 60, told.failed and told.failed[1])
> end
> END
[exit 0]

$ agentbox run t -o before > log; agentbox script told.lua before/*/trajectories-00000.jsonl
unknown	nil	nil	nil
[exit 0]

Some cases are not the suite:

$ agentbox sandbox conform --only exec.
ok       exec.status            <*>
...
conforms native: <*> ok, 0 differ as documented, 0 not applicable, 0 failed
[exit 0]

$ ls .local/state/agentbox/conform 2> /dev/null
[exit 2]

$ agentbox sandbox conform | tail -n 1
conforms native: <*> ok, 0 differ as documented, 0 not applicable, 0 failed
[exit 0]

$ agentbox run t -o after > log; agentbox script told.lua after/*/trajectories-00000.jsonl
pass	dated	true	nil
[exit 0]

What was noted and is not understood is as if it were not there; a failed suite is told with its cases.

$ f=$(echo .local/state/agentbox/conform/native-*.json); echo '{"verdict": "fine"}' > $f; agentbox run t -o odd > log; agentbox script told.lua odd/*/trajectories-00000.jsonl; echo '{"verdict": "fail", "at": 1.5, "cases": 72, "differs": 0, "failed": ["limit.pids"]}' > $f; agentbox run t -o bad > log; agentbox script told.lua bad/*/trajectories-00000.jsonl
unknown	nil	nil	nil
fail	dated	true	limit.pids
[exit 0]

Where it cannot be kept, that is said, and the suite counts all the same.

$ rm -r .local; echo > .local; agentbox sandbox conform 2>&1 >out.txt | tail -n 1; tail -n 1 out.txt
agentbox: warn: the verdict is not remembered: <*>
conforms native: <*> ok, 0 differ as documented, 0 not applicable, 0 failed
[exit 0]

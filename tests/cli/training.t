The way of docs/training.md, against a server that sends token ids.

$ mkdir -p my/hello && cat > my/hello/task.json <<'EOF'
> {"task_id": "hello", "description": "Write a file hello.txt that holds the word hello.",
>  "verifier": {"type": "files", "params": {"checks": [{"path": "hello.txt", "equals": "hello", "trim": true}]}}}
> EOF
> cat > agentbox.yaml <<EOF
> model:
>   model: policy@7
>   base_url: http://127.0.0.1:\${PORT}/v1
>   tokens: require
>   temperature: 1.0
> EOF
[exit 0]

$ mkfifo port; python3 $SRC/tests/support/fakellm.py --watch-pid $$ --script '{"steps": [
>   {"tool_calls": [{"name": "write_file", "arguments": {"path": "hello.txt", "content": "hello"}}], "token_ids": 5, "logprobs": 5},
>   {"content": "Done.", "token_ids": 3, "logprobs": 3}]}' > port & read PORT < port; export PORT
> timeout 60 agentbox run-dir my --n 4 -o runs --run-id g1 2>&1 | grep -a ' ended,'; kill $!
rollouts  4 ended, 4 solved, 0 not solved, 0 unscored
[exit 0]

$ agentbox traj check runs/g1
...
for training: 4 of 4
...
trajectories=4 groups=1 problems=0
[exit 0]

$ agentbox export runs/g1 -f art -o groups.jsonl -O form=exchanges -q && agentbox export runs/g1 -f trl -o rows.jsonl -q && wc -l < groups.jsonl && wc -l < rows.jsonl
groups.jsonl
rows.jsonl
1
4
[exit 0]

$ agentbox export runs/g1 -f openai -o sft.jsonl --best 1 --min-reward 1 --dedupe -q; wc -l < sft.jsonl
sft.jsonl
1
[exit 0]

$ python3 -c '
> import json
> group = json.loads(open("groups.jsonl").readline())
> print(len(group["trajectories"]), group["trajectories"][0]["reward"], group["trajectories"][0]["final_policy_version"])
> row = json.loads(open("rows.jsonl").readline())
> assert len(row["completion_ids"]) == len(row["logprobs"]) == len(row["env_mask"])
> print(row["env_mask"][-1], row["reward"], row["model_version"])
> print(json.loads(open("sft.jsonl").readline())["messages"][-1]["content"])'
4 1.0 7
1 1.0 7
Done.
[exit 0]

$ mkfifo port2; python3 $SRC/tests/support/fakellm.py --watch-pid $$ --script '{"steps": [{"content": "Done.", "token_ids": 3, "logprobs": 3}]}' > port2 & server=$!
> read PORT < port2; export PORT
> agentbox serve runs/online --tasks my --epochs 3 --last --weights 7 --group-size 2 --max-lead 1 --max-staleness 2 --listen unix:door >out 2>err &
> PYTHONPATH=$SRC/python/agentbox/src python3 -c '
> import agentbox
> version = 7
> def train(rows):
>     print(len(rows), "rows of", {row["model_version"] for row in rows} <= set(range(7, version + 1)))
>     return version + 1
> with agentbox.connect("unix:door") as door:
>     for group in door.groups(formats=["trl"]):
>         version = train(group.to_trl())
>         door.policy(version=version, model=f"policy@{version}")
>         group.ack()'; wait $!; echo $?; kill $server
2 rows of True
2 rows of True
2 rows of True
1
[exit 0]

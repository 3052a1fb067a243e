A run's folder: what is in it, whether it can be trusted, what it amounts to.

$ cat > make.lua <<'END'
> local ab = require "agentbox"
> local tasks = {}
> for i = 1, 2 do tasks[i] = { task_id = "t" .. i, description = "d", verifier = { command = "true" } } end
> local n = 0
> local run = assert(ab.runner.start { tasks = tasks, group_size = 2, model = ab.model.scripted { "done" }, out = "runs", run_id = "r",
>   sandbox = { backend = "none" }, agentbox_json = false, concurrency = 1,
>   verifier = function() n = n + 1; return n % 2 * 1.0 end })
> for group in run:groups() do run:ack(group) end
> run:close()
> END
[exit 0]

$ agentbox script make.lua 2>/dev/null; cd runs/r && ls cursor.json events.jsonl groups.jsonl run.db run.json | wc -l
5
[exit 0]

$ agentbox traj list runs/r
r/t1/0  success  reward=1.0  final_answer  task=t1
r/t1/1  failed  reward=0.0  final_answer class=policy  task=t1
r/t2/0  success  reward=1.0  final_answer  task=t2
r/t2/1  failed  reward=0.0  final_answer class=policy  task=t2
[exit 0]

$ agentbox traj list runs/r --status failed --limit 1 --json
{"id":"r/t1/1","attempt":0,"task":"t1","group":"t1","status":"completed","final_status":"failed","stop":"final_answer","class":"policy","scored":true,"reward":0.0,"started":<*>,"finished":<*>}
[exit 0]

$ agentbox traj show runs/r#r/t2/0
task=t2 run=r id=r/t2/0
status=success reward=1.0 stop=final_answer
steps=0 tool_calls=0 duration=N s
...
[exit 0]

$ agentbox traj show runs/r#r/t2
agentbox: runs/r#r/t2: 2 trajectories: r/t2/0, r/t2/1
[exit 2]

$ agentbox traj show runs/r#nobody
agentbox: <*>no such trajectory
[exit 2]

$ agentbox traj check runs/r
for training: 0 of 4; kept from it: 4 no token ids from the server
trajectories=4 groups=2 problems=0
[exit 0]

$ agentbox traj check --removed runs/r#x
agentbox: <*>
[exit 2]

$ agentbox traj check --removed --json runs/r | head -n 1
{"id":"r/t1/0","task_id":"t1","removed":["no token ids from the server"]}
[exit 0]

$ agentbox traj tokens runs/r#r/t1/0
no call has token ids
[exit 0]

$ printf 'scripted: {prompt: 1000000, completion: 0}\n' > prices.yaml; agentbox traj stats runs/r --prices prices.yaml --pass-at 1,2
runs/r
rollouts: 4 of 2 tasks in 2 groups; 4 scored, 0 unscored, 0 retries
status: failed 2, success 2
stop: final_answer 4
class: policy 2
reward: mean 0.5, deviation 0.5774, p50 0, min 0, max 1
  values: 0 x 2, 1 x 2
pass@1 50.0 % (2 tasks), pass@2 100.0 % (2 tasks)
duration: mean <*>
steps: mean 0, p50 0, p90 0, p99 0, max 0
tool calls: mean 0, p50 0, p90 0, p99 0, max 0
...
[exit 0]

$ agentbox traj stats runs/r --pass-at 0
agentbox: --pass-at: 0 is no whole number from 1 on
Try 'agentbox traj stats --help' for more information.
[exit 2]

$ echo '{"m": 3}' > bad.json; agentbox traj stats runs/r --prices bad.json
agentbox: bad.json: the price of m needs the numbers prompt and completion, and may have cached
[exit 2]

A line that was changed is found, and so is what is behind it.

$ sed -i '1s/done/gone/' runs/r/trajectories-00000.jsonl; agentbox traj check runs/r
-: runs/r/trajectories-00000.jsonl:1: <*>the line does not have its recorded sum (rule 12)
t1: runs/r/groups.jsonl:1: its member r/t1/0 has no line (rule 13)
r/t1/0: runs/r/events.jsonl:2: the run recorded this rollout, and it has no line (rule b)
for training: 0 of 3; kept from it: 3 no token ids from the server
trajectories=3 groups=2 problems=3
[exit 1]

A teacher that answers once well and once with a way out of the folder; what is accepted is a task, what is not has its reason.

$ cat > teacher.lua <<'END'
> local ab = require "agentbox"
> local example = require("agentbox.generate.languages.shell").example
> return ab.model.fn(function(request)
>   local hostile = request.session == "candidate-1"
>   return ab.json.encode { task_id = hostile and "../../out" or "add", description = example.description,
>     solution_files = example.solution_files, test_files = example.test_files }
> end)
> END
[exit 0]

$ agentbox generate batch -m lua:teacher.lua --domain shell --no-llm-judge -n 1 -c 1 -o made/tasks
FAIL 1: parse: task_id escapes its folder: ../../out
OK   2 add
generated 1/1 → made/tasks
[exit 0]

$ ls made made/tasks && agentbox generate stats made/tasks
made:
tasks
tasks.state

made/tasks:
add
accepted  1
tried     2
rejected  1 by parse
spent     2 calls, <*> tokens

accepted  tried  difficulty  family
       1      1  easy        data structures
       0      1  easy        text processing
[exit 0]

$ agentbox generate validate-sandbox made/tasks
OK   add
1 of 1 tasks stand
[exit 0]

$ agentbox generate batch -m lua:teacher.lua --domain shell --no-llm-judge -n 2 -c 1 --max-rounds 2 -o made/tasks
FAIL 3 add: dedup: a duplicate of add (1.00 alike)
FAIL 4 add: dedup: a duplicate of add (1.00 alike)
agentbox: generate: 4 candidates were tried
generated 1/2 → made/tasks
[exit 1]

$ cat > judge.lua <<'END'
> local votes = { '{"accept": true, "score": "8/10", "reasons": ["clear"]}', "I will not tell." }
> return require("agentbox").model.fn(function(request) return votes[tonumber(request.session:match "%d+$") % 2 + 1] end)
> END
[exit 0]

$ agentbox generate validate-llm made/tasks -m lua:judge.lua --votes 3 -o audit.jsonl
REJECT add 0.80 (1 of 3 votes): no verdict could be read: the answer holds no JSON object
0 of 1 tasks accepted, votes agree 0.67, kappa -0.50; 1 judged now → audit.jsonl
[exit 1]

$ agentbox generate validate-llm made/tasks -m lua:judge.lua --votes 3 -o audit.jsonl | tail -n 1
0 of 1 tasks accepted, votes agree 0.67, kappa -0.50; 0 judged now → audit.jsonl
[exit 0]

$ agentbox generate review list made/tasks
add  passed  undecided
1 undecided, 0 accepted, 0 rejected
[exit 0]

$ agentbox generate review reject made/tasks add
agentbox: generate: a rejection needs a reason: --reason TEXT
Try 'agentbox generate review reject --help' for more information.
[exit 2]

$ agentbox generate review reject made/tasks add --reason "too plain" && agentbox generate review list made/tasks
rejected add
add  passed  rejected  because: too plain
0 undecided, 0 accepted, 1 rejected
[exit 0]

$ agentbox generate review save made/tasks -o set && ls set
0 tasks → set
[exit 0]

$ agentbox generate review accept made/tasks add && agentbox generate review save made/tasks -o set.jsonl && wc -l < set.jsonl
accepted add
1 tasks → set.jsonl
1
[exit 0]

$ agentbox generate review save made/tasks -o set
agentbox: set is there already
[exit 2]

$ agentbox generate review accept made/tasks @7
agentbox: there is no @7 in made/tasks to review
[exit 2]

$ agentbox generate review html made/tasks -o page.html && grep -c '<script' page.html
1 of 1 tasks → page.html
0
[exit 1]

$ agentbox generate batch
agentbox: generate: a teacher is needed: --model, or teacher.model in agentbox.yaml
Try 'agentbox generate batch --help' for more information.
[exit 2]

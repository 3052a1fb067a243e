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

$ agentbox generate batch
agentbox: generate: a teacher is needed: --model, or teacher.model in agentbox.yaml
Try 'agentbox generate batch --help' for more information.
[exit 2]

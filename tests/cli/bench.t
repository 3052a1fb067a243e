Suites: made, frozen, run with several models, compared; what the infrastructure spoils is apart.

$ for t in a b c; do mkdir -p tasks/$t; echo "{\"task_id\": \"$t\", \"description\": \"make ok\", \"verifier\": {\"command\": \"test -f ok\"}}" >tasks/$t/task.json; done
> cat > good.lua <<'END'
> return function(request)
>   for _, message in ipairs(request.messages) do if message.role == "tool" then return "done" end end
>   return { role = "assistant", content = "", tool_calls = { { name = "run_command", arguments = { command = "touch ok" } } } }
> end
> END
> sed 's/^  return/  if request.session:find "[bc]\/0" then return "no" end\n&/' good.lua > fair.lua
[exit 0]

$ agentbox bench create S --from-tasks tasks --suite-id mini --name Mini --n 2 --setup-check sh=true
suite mini 1.0.0: 3 tasks
content hash 8ba1bbb493dfa7bf4faf15e35610db1010ed684f302b0c98c0f272a8855590dc
seal sha256:<*>
<*>/S
[exit 0]

$ agentbox bench validate --strict S
suite mini 1.0.0: 3 tasks
content hash ok: 8ba1bbb493dfa7bf4faf15e35610db1010ed684f302b0c98c0f272a8855590dc
seal ok: sha256:<*>
images without a digest here: host
[exit 0]

Two students, ranked. A script has no server that would be asked before.

$ agentbox bench run S --backend none --student fair=lua:fair.lua --student good=lua:good.lua --out R 2>/dev/null
suite mini 1.0.0  hash 8ba1bbb493df
1. good  success 1.000 [0.439, 1.000]  reward 1.000  pass@k 1.000  steps 1.00  n 6
2. fair  success 0.667 [0.500, 1.000]  reward 0.667 [0.500, 1.000]  pass@k 1.000  steps 0.67  n 6
report R/REPORT.md
[exit 0]

$ ls R R/models/good R/models/good/trajectories | grep -v -e '^........-' -e '^$'
R:
REPORT.md
attempts.csv
bench.json
junit.xml
models
report.json
suite_snapshot
R/models/good:
model_report.json
trajectories
R/models/good/trajectories:
a_<*>.json
a_<*>.json
b_<*>.json
b_<*>.json
c_<*>.json
c_<*>.json
[exit 0]

$ python3 -c "import xml.dom.minidom as x; d = x.parse('R/junit.xml').documentElement; print(d.tagName, d.getAttribute('tests'), d.getAttribute('failures'), d.getAttribute('errors'))"; wc -l <R/attempts.csv
testsuites 12 2 0
13
[exit 0]

$ agentbox bench show R | grep -A 99 ^fair: | grep -v -e ^good -e 2/2
fair: success 4, failed 2
  infrastructure: unscored none; made again none
  suspicious: 0 of 6 (touched 0, planted 0, history 0, spoofed 0, mismatch 0)
  pass@1 0.667, pass@2 1.000
  b                                1/2  reward 0.500  steps 0.5
  c                                1/2  reward 0.500  steps 0.5
<*>
  infrastructure: unscored none; made again none
  suspicious: 0 of 6 (touched 0, planted 0, history 0, spoofed 0, mismatch 0)
  pass@1 1.000, pass@2 1.000
<*>
what fails alike:
     2  <*>  exit 1    (as b)
[exit 0]

$ agentbox bench compare R R --student-a fair --student-b good
suite mini  hashes match, seals match
fair against good: success 0.667 to 1.000 (+0.333), steps 0.67 to 1.00 (+0.33)
  success: +0.3333 [+0.0000, +0.5000] over 3 tasks; better 2, worse 0, same 1; sign test p = 0.5, permutation test p = 0.5 (exact); d = 1.15
  reward: +0.3333 [+0.0000, +0.5000] over 3 tasks; better 2, worse 0, same 1; sign test p = 0.5, permutation test p = 0.5 (exact); d = 1.15
  b                                0.500 to 1.000  50.0 % of the difference
  c                                0.500 to 1.000  50.0 % of the difference
[exit 0]

A threshold for CI, of the best model. A subset says so.

$ agentbox bench run S --backend none --student fair=lua:fair.lua --out R2 --task b --task c --n 1 --min-success-rate 0.5
agentbox: warn: backend none: commands run on this machine, unconfined
agentbox: bench run: the best model's success rate is 0, below 0.5
suite mini 1.0.0  hash 8ba1bbb493df SUBSET: 2 of 3 tasks
1. fair  success 0.000 [0.000, 0.658]  reward 0.000  pass@k 0.000  steps 0.00  n 2
note: a subset: 2 of the suite's 3 tasks
report R2/REPORT.md
[exit 1]

A server that does not answer is told before anything is run; one that fails in the run has no score, and the exit status says so. C4

$ agentbox bench run S --backend none --student good=lua:good.lua --student 'broken=m@1@http://127.0.0.1:9/v1' --out R3 2>&1 | grep -v -e hint -e warn; ls R3
agentbox: bench run: broken: [FAIL] chat: could not connect to 127.0.0.1:9<*>
agentbox: bench run: 1 of 2 servers did not answer the probe; nothing was run
Take them out, mend them, or run with --no-probe.
ls: cannot access 'R3': No such file or directory
[exit 2]

$ echo '{"models": [{"id": "good", "model": "lua:good.lua"}, {"id": "broken", "model": "m", "base_url": "http://127.0.0.1:9/v1", "max_tries": 1}]}' >models.json; agentbox bench run S --backend none --models-file models.json --no-probe --attempts 1 --out R3 2>&1 | grep -v -e warn; agentbox bench run S --backend none --models-file models.json --no-probe --attempts 1 --out R3b >/dev/null 2>&1
Go on with: agentbox bench run --resume --out R3 --retry-errors
suite mini 1.0.0  hash 8ba1bbb493df
1. good  success 1.000 [0.439, 1.000]  reward 1.000  pass@k 1.000  steps 1.00  n 6
2. broken  success -  reward -  pass@k -  steps 0.00  n 0  unscored 6  NOT VALID
note: broken: 6 of 6 attempts have no score, more than the quota
report R3/REPORT.md
[exit 3]

A setup check that fails is no verdict on the model.

$ agentbox bench create S2 --from-tasks tasks --suite-id bad --name Bad --setup-check tool='no-such-program' >/dev/null; agentbox bench run S2 --backend none --mock --out R4 2>/dev/null | grep -v hash; python3 -c "import json; r = json.load(open('R4/report.json')); print([t['setup_check_failures'] for t in r['models'][0]['by_task']], r['failures'][0]['class'])"
1. mock  success -  reward -  pass@k -  steps 0.00  n 0  unscored 3  NOT VALID
note: mock: 3 of 3 attempts have no score, more than the quota
report R4/REPORT.md
[1, 1, 1] task
[exit 0]

What differs is refused when that is wanted, and told always. C7

$ sed -i s/ok/okay/ S/tasks/a/task.json; agentbox bench validate S
suite mini 1.0.0: 3 tasks
content hash differs: expected 8ba1bbb493dfa7bf4faf15e35610db1010ed684f302b0c98c0f272a8855590dc, got <*>
seal differs in: tasks, prompts, verifiers
images without a digest here: host
[exit 2]

$ agentbox bench run S --mock --out R5 --strict --limit 1
agentbox: strict: the suite differs from its content hash: expected 8ba1bbb493df<*>
[exit 2]

$ agentbox bench run S --backend none --mock --out R5 --limit 1 2>&1 | grep note
note: a subset: 1 of the suite's 3 tasks
note: the suite differs from its stored content hash
note: differs from the suite's seal in: tasks, prompts, verifiers
[exit 0]

$ agentbox bench freeze S; agentbox bench run S --backend none --mock --out R6 --limit 1 --strict 2>/dev/null | tail -2
content hash <*>
seal sha256:<*>
note: a subset: 1 of the suite's 3 tasks
report R6/REPORT.md
[exit 0]

$ agentbox bench run S --mock --out R7 --strict --image other
agentbox: strict: what would run differs from the suite's seal in: images, sandbox
[exit 2]

A result begins once, is gone on with from its own copy of the suite, and lies nowhere near the suite. F4

$ agentbox bench run S --mock --out R6
agentbox: R6 holds a result already; --resume goes on with it, --out names another place
[exit 2]

$ rm -r S; agentbox bench run --resume --out R6 --n 3
agentbox: the result was begun with another n; begin a new one with another --out
[exit 2]

$ agentbox bench run --resume --out R6 --student mock=lua:good.lua
agentbox: the result was begun with another model for mock; begin a new one with another --out
[exit 2]

$ agentbox bench run --resume --out R6 2>/dev/null | tail -1
report R6/REPORT.md
[exit 0]

$ agentbox bench run S2 --mock --out S2/results
agentbox: --out S2/results: results must not lie in the suite's folder, nor it in them
Try 'agentbox bench run --help' for more information.
[exit 2]

$ ls S2; agentbox bench list | sort | head -3
suite.json
tasks
result  ./R  mini  fair, good  finished
result  ./R2  mini  fair  subset  finished
result  ./R3  mini  good, broken  finished
[exit 0]

What is no number, no student, no result. B128: 0 is not "all".

$ agentbox bench run S2 --mock --limit 0
agentbox: bench run: --limit must be at least 1, not 0
Try 'agentbox bench run --help' for more information.
[exit 2]

$ agentbox bench run S2 --out R8
agentbox: bench run: no models: give --student, --models-file, --model or --mock, or `students` in agentbox.yaml
Try 'agentbox bench run --help' for more information.
[exit 2]

$ agentbox bench run S2 --student x=m --out R8
agentbox: --student x=m: must read ID=MODEL@URL with a URL that begins with http:// or https://
Try 'agentbox bench run --help' for more information.
[exit 2]

$ mkdir empty; agentbox bench show empty
agentbox: empty: no result here: neither bench.json nor report.json
[exit 2]

The students of agentbox.yaml, and no key in what is written.

$ printf 'students:\n  - {id: dead, model: m, base_url: "http://user:geheim99@127.0.0.1:9/v1", api_key: "${K}"}\n' >agentbox.yaml; K=sehrgeheim123 agentbox bench run S2 --backend none --no-probe --attempts 1 --limit 1 --out R9 >/dev/null 2>&1; echo $?; grep -rl -e geheim99 -e sehrgeheim R9; ls R9/models
3
dead
[exit 0]

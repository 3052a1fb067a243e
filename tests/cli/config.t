Every value has an origin (B130); secrets are shown as ***.

$ mkdir -p lab/deep && cat > lab/agentbox.yaml <<'END'
> model:
>   model: from-file
>   base_url: http://user:pw@127.0.0.1:1/v1
>   api_key: ${THE_KEY}
>   extra_headers: { X-Auth: top-secret }
> teacher: { model: big, api_key: teacher-key-1 }
> END
[exit 0]

$ cd lab/deep && THE_KEY=sk-abcdef AGENTBOX_MODEL=from-env agentbox config show | grep -E 'file  |^model\.(model |base_url |api_key|extra_h)|^teacher|max_steps '
file  TMP/lab/agentbox.yaml
model.model                from-env                         environment AGENTBOX_MODEL
model.base_url             http://***@127.0.0.1:1/v1        file TMP/lab/agentbox.yaml
model.api_key              ***                              file TMP/lab/agentbox.yaml
model.extra_headers        {"X-Auth":"***"}                 file TMP/lab/agentbox.yaml
agent.max_steps            40                               default
teacher                    {"api_key":"***","model":"big"}  file TMP/lab/agentbox.yaml
[exit 0]

$ cd lab/deep && THE_KEY=sk-abcdef agentbox config show --json | grep -c sk-abcdef
0
[exit 1]

A run's folder tells the configuration it ran with, and no secret either.

$ cd lab/deep && mkdir task && echo '{"task_id": "t", "description": "d", "verifier": {"command": "true"}}' > task/task.json && THE_KEY=sk-abcdef agentbox run task -m mock --max-steps 7 -o out > /dev/null; grep -c -E 'sk-abcdef|:pw@|top-secret|teacher-key' out/*/run.json; grep -A 2 -E '"(agent.max_steps|model.base_url)"' out/*/run.json; grep -E '"(command|task|file)"' out/*/run.json
0
      "agent.max_steps": {
        "origin": "flag --max-steps",
        "value": 7
--
      "model.base_url": {
        "origin": "file TMP/lab/agentbox.yaml",
        "value": "http://***@127.0.0.1:1/v1"
  "command": "run",
    "file": "TMP/lab/agentbox.yaml",
  "task": "task"
[exit 0]

$ cd lab/deep && agentbox config show
agentbox: TMP/lab/agentbox.yaml:4: model.api_key: the environment variable THE_KEY is not set (${THE_KEY:-text} gives a default)
[exit 2]

$ AGENTBOX_CONFIG=missing.yaml agentbox config show
agentbox: AGENTBOX_CONFIG names missing.yaml, which does not exist
[exit 2]

$ mkdir t && echo 'x = 1' > t/agentbox.toml && cd t && agentbox config show
agentbox: TMP/t/agentbox.toml: TOML is not read; write the same keys as agentbox.yaml or agentbox.json
[exit 2]

$ mkdir u && printf 'sandbox:\n  limits:\n    memmory_mb: 5\n' > u/agentbox.yaml && cd u && agentbox config show
agentbox: TMP/u/agentbox.yaml:3: sandbox.limits.memmory_mb: unknown key, did you mean 'memory_mb'?
[exit 2]

A wrong file stops what would use it, not what does not need it.

$ cd u && agentbox version
0.1.0
[exit 0]

$ cd u && agentbox run x
agentbox: TMP/u/agentbox.yaml:3: sandbox.limits.memmory_mb: unknown key, did you mean 'memory_mb'?
[exit 2]

Models of roles: a verifier that asks a judge finds the one that the file names, in a run of one and of many.

$ mkdir -p r/t && echo '{"task_id": "t", "description": "d", "artifacts": ["**"], "verifier": {"type": "llm_judge", "params": {"rubric": "r"}}}' > r/t/task.json && echo 'return function() return [[{"reason": "half", "score": 0.5}]] end' > r/judge.lua
[exit 0]

$ cd r && agentbox run t | head -1
agentbox: run: no model has the role 'judge' here: give it as models.judge, in agentbox.yaml or to ab.runner.start
status=error reward=- steps=0
[exit 0]

$ cd r && printf 'models:\n  judge: {model: "lua:judge.lua"}\n' > agentbox.yaml && agentbox run t | head -1 && agentbox run-dir . --n 2 --run-id a 2>/dev/null | grep ^reward && agentbox rescore trajectories/a --tasks . | sed 's/.*: //'
status=success reward=0.5 steps=0
reward    mean 0.5 over the 2 scored
2 rollouts, 2 judged, 0 of them unscored
[exit 0]

What is no server's for --model is none here, and asks nobody.

$ cd r && for name in mock scripted: replay: replay:none; do printf "models:\n  judge: {model: \"$name\"}\n" > agentbox.yaml; agentbox run t 2>&1 | head -1; done
agentbox: run: the judge gave 0 of 1 votes: the answer holds no JSON object
agentbox: run: models.judge: model scripted: lacks the file's name
agentbox: run: models.judge: model replay: lacks the file's name
agentbox: none: No such file or directory
[exit 0]

$ cd r && printf 'models:\n  judge: {model: m, base_url: "ftp://me:secret@example.org"}\n' > agentbox.yaml && agentbox run t
agentbox: models.judge: base_url must begin with http:// or https://: ftp://***@example.org
[exit 2]

A judge's server that is not there is told at once, too.

$ cd r && printf 'models:\n  judge: {model: m, base_url: "http://127.0.0.1:1/v1"}\n' > agentbox.yaml; agentbox run-dir . 2>told >/dev/null & pid=$!; until grep -qs wait told || ! kill -0 $pid; do sleep 0.05; done; kill -TERM $pid; wait $pid; echo $?; head -1 told
130
agentbox: models.judge: could not connect to 127.0.0.1:1: Connection refused; calls that wait to be made again: 1
[exit 0]

$ cd r && printf 'models:\n  agent: {model: m}\n' > agentbox.yaml && agentbox run t
agentbox: run: models.agent: the agent's model is the section `model`, or --model
Try 'agentbox run --help' for more information.
[exit 2]

$ cd r && printf 'models:\n  judge: {base_url: "http://127.0.0.1:1/v1"}\n' > agentbox.yaml && agentbox run-dir .
agentbox: run: models.judge: model, its name, is missing
Try 'agentbox run-dir --help' for more information.
[exit 2]

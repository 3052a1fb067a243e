The machine, rung by rung; the sandbox proved by using one.

$ agentbox doctor
ok    agentbox     0.1.0
ok    lua          Lua 5.4
ok    kernel       <*>
ok    system       <*>
ok    place        <*>, as <*>
...
ok    sandbox      created, ran a command, destroyed in <*> ms
...
overall ok
[exit 0]

One screen of it, whatever is missing:

$ test $(agentbox doctor | wc -l) -le 24
[exit 0]

In a container the next step is in the words of whoever starts it:

$ KUBERNETES_SERVICE_HOST=10.0.0.1 AGENTBOX_CGROUP=none agentbox doctor | grep -A1 -E '^(ok|-) +(place|limits)' | grep -E 'place|pod'
ok    place        in a Kubernetes pod, as <*>
      next: securityContext with seccompProfile <*> bound all sandboxes together
[exit 0]

$ agentbox doctor --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["ok"], [c["name"] for c in d["checks"]][:4])'
True ['agentbox', 'lua', 'kernel', 'system']
[exit 0]

$ agentbox doctor --base-url http://127.0.0.1:1/v1
agentbox: doctor: --base-url needs --model as well
Try 'agentbox doctor --help' for more information.
[exit 2]

A model server is asked for a chat and for a tool call.

$ mkfifo port; python3 $SRC/tests/support/fakellm.py --watch-pid $$ --script '{"steps": ["pong", {"tool_calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}]}' > port & read p < port; agentbox doctor -m fake --base-url http://127.0.0.1:$p/v1 | grep -E 'chat|tools|overall'
ok    chat         fake at http://127.0.0.1:<*>/v1: replied "pong"
ok    tools        fake at http://127.0.0.1:<*>/v1: called add
overall ok
[exit 0]

$ agentbox doctor -m fake --base-url http://127.0.0.1:1/v1 --skip-tools | grep -E -A1 'chat|overall'
FAIL  chat         fake at http://127.0.0.1:1/v1: could not connect to 127.0.0.1:1: <*>
      next: Check that the server runs, <*>
overall FAIL: 1 of <*>
[exit 0]

$ agentbox doctor -m fake --base-url http://127.0.0.1:1/v1 --skip-tools --json > /dev/null
[exit 3]

$ agentbox prune --dry-run
found <*>
[exit 0]

$ agentbox prune --json
{"removed":<*>}
[exit 0]

The script of the Lua surface's first page, word for word, against a model server.

$ cp -r $SRC/tasks . && cat > gen.lua <<'EOF'
> local ab = require "agentbox"
> local model = assert(ab.model.open { model = arg[1], base_url = arg[2], api_key = ab.secret "API_KEY" })
>
> local sb <close> = assert(ab.sandbox.create { image = "host", network = "none", limits = { memory_mb = 512 } })
> assert(sb:write("t.py", "print(6*7)\n"))
> local out = assert(sb:exec("python3 t.py", { timeout_s = 10 }))
> print(out.exit_code, out.stdout)                                             --> 0   42
>
> local traj = assert(ab.rollout.run { task = "tasks/fix_fizzbuzz", model = model, max_steps = 20 })
> print(traj.final_status, traj.reward)                                        -- reward is nil when unscored
> EOF
[exit 0]

$ cat > serve.sh <<'EOF'
> mkfifo port
> python3 - > steps.json <<'PY'
> import json
> solution = open("tasks/fix_fizzbuzz/solution/fizzbuzz.py").read()
> write = {"name": "write_file", "arguments": {"path": "fizzbuzz.py", "content": solution}}
> print(json.dumps({"steps": [{"tool_calls": [write]}, "done"]}))
> PY
> python3 $SRC/tests/support/fakellm.py --strict --token sk-contract-1 --watch-pid $PPID --script steps.json > port &
> read p < port; rm port
> EOF
[exit 0]

$ . ./serve.sh; API_KEY=sk-contract-1 agentbox script gen.lua m http://127.0.0.1:$p/v1
0	42
<*>
success	1.0
[exit 0]

A key that the server does not know: unscored, so that there is no number.

$ . ./serve.sh; API_KEY=sk-wrong-key agentbox script gen.lua m http://127.0.0.1:$p/v1 | tail -1
error	nil
[exit 0]

$ agentbox script gen.lua m http://127.0.0.1:1/v1
agentbox: gen.lua:2: the environment variable API_KEY is not set
stack traceback:
   gen.lua:2: in main chunk
[exit 1]

A tool that keeps a process of its own.

$ cat > python.lua <<'EOF'
> return require("agentbox.tool").define {
>   api = 1, name = "python", description = "Send one line to a Python that keeps its state.", exclusive = true,
>   parameters = {
>     { "code", "string", "one line of Python" },
>     { "timeout_s", "number", "seconds to wait", default = 20 },
>   },
>   open = function(ctx) return ctx.sandbox:spawn { "python3", "-i", "-q" } end,
>   run = function(_, args, py) return py:ask(args.code .. "\nprint('(ok)')\n", { until_text = "(ok)\n", timeout_s = args.timeout_s }) end,
>   close = function(py) py:kill() end,
> }
> EOF
[exit 0]

$ cat > turns.lua <<'EOF'
> local function py(code) return { tool_calls = { { name = "python", arguments = { code = code } } } } end
> return { py "x = 20", py "print(x * 2 + 2)", "ok" }
> EOF
[exit 0]

$ mkdir count && cat > count/task.json <<'EOF'
> {"task_id": "count", "description": "Count.", "files": {"a": "hello"}, "verifier": {"type": "command", "command": "! pgrep python3"}}
> EOF
[exit 0]

$ agentbox run count -m scripted:turns.lua --tool python.lua -o out
status=success reward=1.0 steps=2
saved out/count_<*>.json
[exit 0]

$ grep -o '"content": "42[^"]*"' out/count_*.json
"content": "42\n(ok)\n"
[exit 0]

The file that defined the tool is in the record, with its hash.

$ grep -o '"name":"python","from":"python.lua","hash":"sha256:' out/*/*.jsonl
"name":"python","from":"python.lua","hash":"sha256:
[exit 0]

A file replaces a built-in: with --tool, and as an overlay, which may call what it replaces.

$ mkdir -p lab/agentbox/tools && cat > lab/agentbox/tools/read_file.lua <<'EOF'
> local builtin = require("agentbox").builtin "agentbox.tools.read_file"
> return require("agentbox.tool").define {
>   api = 1, name = "read_file", description = builtin.description, parameters = builtin.parameters,
>   run = function(ctx, args)
>     local text, problem = builtin.run(ctx, args)
>     if not text then return nil, problem end
>     return "the lab read: " .. text
>   end,
> }
> EOF
[exit 0]

$ echo '[{"tool_calls":[{"name":"read_file","arguments":{"path":"a"}}]},"ok"]' > read.json; agentbox -L lab run count -m scripted:read.json -o overlay && grep -ho '"content": "the lab[^"]*"' overlay/*.json
status=success reward=1.0 steps=1
saved overlay/count_<*>.json
"content": "the lab read: hello"
[exit 0]

$ agentbox run count -m scripted:read.json --tool lab/agentbox/tools/read_file.lua -o tool && grep -ho '"content": "the lab[^"]*"' tool/*.json
status=success reward=1.0 steps=1
saved tool/count_<*>.json
"content": "the lab read: hello"
[exit 0]

$ agentbox run count -m scripted:read.json -o plain && grep -ho '"content": "the lab[^"]*"' plain/*.json
status=success reward=1.0 steps=1
saved plain/count_<*>.json
[exit 1]

A Lua verifier returns named numbers; what it cannot judge stays unscored.

$ cat > close.lua <<'EOF'
> return function(ev)
>   local out = assert(ev.sandbox:exec("cat a", { cwd = ev.workspace }))
>   return { close = out.stdout == "hello" and 1 or 0, tidy = #assert(ev:diff()) == 0 and 1 or 0.5, reward = 0.75 }, "said " .. out.stdout
> end
> EOF
[exit 0]

$ agentbox run count -m scripted:read.json --verifier close.lua -o named
status=failed reward=0.75 steps=1
saved named/count_<*>.json
[exit 1]

$ echo 'return function() return nil, "cannot say" end' > none.lua; agentbox run count --verifier none.lua -o unscored
agentbox: run: cannot say
status=error reward=- steps=0
saved unscored/count_<*>.json
[exit 3]

A tool that raises is named with its file and line in the record; the model reads a short error and goes on.

$ echo 'return require("agentbox.tool").define { api = 1, name = "bad", description = "d", run = function() return nil .. "x" end }' > bad.lua
[exit 0]

$ echo '[{"tool_calls":[{"name":"bad","arguments":{}}]},"ok"]' > bad.json; agentbox run count -m scripted:bad.json --tool bad.lua -o bad && grep -ho '"content": "ERROR[^"]*"' bad/*.json
agentbox: warn: the tool bad raised: bad.lua:1: attempt to concatenate a nil value (told once; the records have each with its traceback)
status=success reward=1.0 steps=1
saved bad/count_<*>.json
"content": "ERROR: bad failed: bad.lua:1: attempt to concatenate a nil value"
[exit 0]

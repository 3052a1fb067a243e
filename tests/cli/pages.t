Pages for browsers: one file, or served. What is in them is tested in tests/lua/render_test.lua and tests/peers/pages.sh.

$ cat > t.json <<'END'
> {"task_id": "fix_1", "run_id": "12345678-aaaa-4bbb-8ccc-1234567890ab", "model": "org/m", "final_status": "failed", "reward": 0.5,
>  "messages": [{"role": "user", "content": "do"}, {"role": "assistant", "content": "</script><b>"}], "metrics": {"steps": 3}}
> END
> mkdir -p many bench/models/org/m/trajectories bench/suite empty; echo '{}' >empty/report.json; echo '{}' >bench/suite/task.json
> cp t.json bench/models/org/m/trajectories; for i in 1 2 3; do tr -d '\n' <t.json; echo; done >many/all.jsonl; echo broken >>many/all.jsonl
[exit 0]

$ agentbox traj render t.json
traj.html: <*> KB, 1 trajectory, 1 of them whole
[exit 0]

$ grep -c '</script><b>' traj.html
0
[exit 1]

$ agentbox traj render many/all.jsonl -o page.html --bodies 0
agentbox: traj render: 1 line could not be read and stayed out; see agentbox traj check
page.html: <*> KB, 3 trajectories, 0 of them whole
[exit 0]

F5: a model's name with a slash, and a folder that has a report and nothing else.

$ agentbox traj render bench -o bench.html
bench.html: <*> KB, 1 trajectory, 1 of them whole
[exit 0]

$ agentbox traj render empty -o none.html; echo exit $?; ls none.html 2>/dev/null
agentbox: empty: no trajectories to render
exit 2
[exit 2]

$ agentbox traj render t.json -o nowhere/page.html; echo exit $?; ls *.partial nowhere 2>/dev/null
agentbox: cannot write nowhere/page.html: <*>
exit 3
[exit 2]

$ agentbox traj render t.json --compare many
agentbox: t.json: only a benchmark's result can be compared
[exit 2]

$ agentbox view nothing
agentbox: no run 'nothing': <*>
See agentbox ps, or agentbox ps DIR for those that ended.
[exit 2]

It says its address first; Ctrl-C ends it.

$ mkfifo said; agentbox view many/all.jsonl >said & read url <said; curl -s "${url}api/state" | cut -c 1-13; curl -s -o /dev/null -w '%{http_code}\n' -H 'Host: evil.example' "$url"; kill -INT $!; wait $!
{"damaged":1,
421
[exit 130]

Others can reach this one: the address has a token that is made for it.

$ agentbox view many/all.jsonl --listen 0.0.0.0:0 >said & read url <said; echo "$url" | sed 's/[0-9a-f]\{36\}/TOKEN/; s/:[0-9][0-9]*/:PORT/'; curl -s -o /dev/null -w '%{http_code}\n' "${url%%\?*}"; kill -INT $!; wait $!
http://0.0.0.0:PORT/?token=TOKEN
401
[exit 130]

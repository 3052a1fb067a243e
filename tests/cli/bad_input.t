Task files that are missing, broken or hostile: one line that names the file and the field, exit 2, nothing written.

$ cat > make.sh <<'EOF'
> task() { mkdir -p $1 && printf '%s' "$2" > $1/task.json; }
> ok='"task_id": "t", "description": "d", "verifier": {"command": "true"}'
> task cut '{"task_id": "t",'
> task list '[1]'
> task nothing '{"description": "d", "verifier": {"command": "true"}}'
> task unjudged '{"task_id": "t", "description": "d"}'
> task types "{$ok, \"max_steps\": \"many\"}"
> task deep "{$ok, \"limits\": {\"memory_mb\": {}}}"
> task typo "{$ok, \"decription\": \"x\"}"
> task up '{"task_id": "../x", "description": "d", "verifier": {"command": "true"}}'
> task root '{"task_id": "/etc/x", "description": "d", "verifier": {"command": "true"}}'
> task escape "{$ok, \"starter_files\": {\"../x\": \"y\"}}"
> task absolute "{$ok, \"files\": {\"/etc/passwd\": \"y\"}}"
> task from "{$ok, \"files\": {\"a\": {\"from\": \"../cut/task.json\"}}}"
> task link "{$ok}"; mkdir link/files; ln -s /etc/passwd link/files/p
> task pipe "{$ok}"; mkdir pipe/files; mkfifo pipe/files/p
> task latin "$(printf '{"task_id": "t\377"}')"
> mkdir empty
> EOF
[exit 0]

$ . ./make.sh; for t in nowhere empty cut list nothing unjudged types deep typo up root escape absolute from link pipe latin; do agentbox run $t -o out; [ $? = 2 ] || echo "$t: not 2"; done; ls out
agentbox: nowhere: no such file or folder
agentbox: empty: no task.json or task.yaml in this folder
agentbox: cut/task.json: <*> at line 1 column 17 <*>
agentbox: list/task.json: must be a map, is a list
agentbox: nothing/task.json: task_id: is missing
agentbox: unjudged/task.json: verifier: is missing
agentbox: types/task.json: max_steps: must be a whole number, is the text "many"
agentbox: deep/task.json: limits.memory_mb: must be a number, is a map
agentbox: typo/task.json: decription: unknown key (did you mean "description"?)<*>
agentbox: up/task.json: task_id: escapes its folder: ../x
agentbox: root/task.json: task_id: is an absolute path: /etc/x
agentbox: escape/task.json: starter_files: "../x": path escapes the workspace: ../x
agentbox: absolute/task.json: files: "/etc/passwd": path escapes the workspace: /etc/passwd
agentbox: from/task.json: files: "a": from/../cut/task.json: leads out of the task's folder (to TMP/cut/task.json)
agentbox: link/files/p: leads out of the task's folder (to /etc/passwd)
agentbox: pipe/files/p: is a fifo, not a file
agentbox: latin/task.json: bytes that are not UTF-8 at line 1 column 15 <*>
ls: cannot access 'out': No such file or directory
[exit 2]

A task may be called -rf, and files are bytes.

$ mkdir -p rf/files && printf '\377\000\n' > rf/files/b && echo '{"task_id": "-rf", "description": "--help", "verifier": {"command": "test $(od -An -tx1 < b | tr -d \" \") = ff000a"}}' > rf/task.json && agentbox run rf -o out
status=success reward=1.0 steps=0
saved out/_-rf-<*>.json
[exit 0]

$ agentbox export out -f jsonl -o all.jsonl -q && agentbox traj check out && rm -r out
all.jsonl
<*>
trajectories=1 groups=0 problems=0
[exit 0]

A folder for output that cannot be: found before the rollout starts.

$ touch file; for o in file file/x /dev/null /sys/x; do agentbox run rf -o $o; [ $? = 2 ] || echo "$o: not 2"; done
agentbox: cannot record into file: create file/ID: Not a directory
Make room or permit it there, or name another folder with --out.
agentbox: cannot record into file/x: create file/x/ID: Not a directory
Make room or permit it there, or name another folder with --out.
agentbox: cannot record into /dev/null: create /dev/null/ID: Not a directory
Make room or permit it there, or name another folder with --out.
agentbox: cannot record into /sys/x: create /sys/x: <*>
Make room or permit it there, or name another folder with --out.
[exit 0]

A file system that is read-only or full. Only root, or who may make a user namespace, can mount one here; elsewhere it is
the folder's mode that says no.

$ cat > mounted.sh <<'EOF'
> # mounted.sh OPTIONS COMMAND: runs it with a file system of its own on the folder `small`
> mkdir -p small
> if unshare -m true 2>/dev/null; then exec unshare -m sh -c "mount -t tmpfs -o $1 x small && $2"; fi
> exec unshare -rm sh -c "mount -t tmpfs -o $1 x small && $2"
> EOF
[exit 0]

$ sh mounted.sh ro 'agentbox run rf -o small'
agentbox: cannot record into small: create small/ID: Read-only file system
Make room or permit it there, or name another folder with --out.
[exit 2]

$ sh mounted.sh size=16k 'agentbox run rf -o small; s=$?; cat small/*/*.jsonl 2>/dev/null; ls small | grep -c json; exit $s'
agentbox: cannot record ID into small/ID: <*>No space left on device
Make room or permit it there, or name another folder with --out.
0
[exit 3]

$ sh mounted.sh size=1m,nr_inodes=4 'agentbox run rf -o small; s=$?; ls small | grep -c json; exit $s'
agentbox: cannot record into small: <*>No space left on device
Make room or permit it there, or name another folder with --out.
0
[exit 3]

$ agentbox run rf -o out > /dev/null; sh mounted.sh size=8k 'cat /dev/zero > small/fill; agentbox export out -f jsonl -o small/x.jsonl; s=$?; ls small; exit $s'
cat: write error: No space left on device
agentbox: small/x.jsonl: write: No space left on device
fill
[exit 3]

$ sh mounted.sh ro 'agentbox export out -f jsonl -o small/x.jsonl'
agentbox: small/x.jsonl: open <*>: Read-only file system
[exit 2]

A folder that goes, is replaced or closes while the rollout runs: it is not the input that is wrong.

$ cat > gone.lua <<'EOF'
> return require "agentbox.tool".define { api = 1, name = "gone", description = "d",
>   parameters = { { "command", "string" } }, run = function(_, args) os.execute(args.command) return "ok" end }
> EOF
[exit 0]

$ for c in 'rm -r gone' 'rm -r gone; touch gone' 'rm -r gone; ln -s /dev/full gone' 'mv gone elsewhere'; do printf '[{"tool_calls":[{"name":"gone","arguments":{"command":"%s"}}]},"done"]' "$c" > s.json; agentbox run rf --tool gone.lua -m scripted:s.json -o gone; echo $?; rm -rf gone; done
agentbox: cannot record ID into gone/ID: <*>: No such file or directory
Make room or permit it there, or name another folder with --out.
3
agentbox: cannot record ID into gone/ID: <*>: Not a directory
Make room or permit it there, or name another folder with --out.
3
agentbox: cannot record ID into gone/ID: <*>: Not a directory
Make room or permit it there, or name another folder with --out.
3
agentbox: cannot record ID into gone/ID: <*>: No such file or directory
Make room or permit it there, or name another folder with --out.
3
[exit 0]

An export never takes the place of a device.

$ agentbox export out -f jsonl -o /dev/null; ls -l /dev/null | cut -c 1
agentbox: /dev/null: is a char, not a file
c
[exit 0]

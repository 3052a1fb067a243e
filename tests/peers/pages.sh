#!/bin/sh
# The pages in a real Chromium: every view, both themes, three widths, the keys, ten thousand rows, hostile texts; no error
# in the console, no request, nothing serious for axe-core. AGENTBOX_PICTURES=DIR keeps the pictures of docs/pages.md there.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no Chromium (setup test installs it)"
peer 11 pages playwright==1.49.1 axe-playwright-python==0.1.4
for kind in run hostile many; do
    "$1" script "$here/../pages/lab.lua" "$out" "$kind" "$kind"
done
"$1" traj render "$out/run" -o "$out/run.html"
"$1" traj render "$out/run#14b-lru-cache-1" -o "$out/one.html"
"$1" traj render "$out/hostile" -o "$out/hostile.html"
"$1" traj render "$out/many.jsonl" -o "$out/many.html"
# A benchmark of two scripted students, and an earlier one in which the second did worse.
for task in alpha beta gamma delta; do
    mkdir -p "$out/tasks/$task"
    echo "{\"task_id\": \"$task\", \"description\": \"make ok\", \"verifier\": {\"command\": \"test -f ok\"}}" >"$out/tasks/$task/task.json"
done
cat >"$out/good.lua" <<'END'
return function(request)
  for _, message in ipairs(request.messages) do if message.role == "tool" then return "done" end end
  return { role = "assistant", content = "", tool_calls = { { name = "run_command", arguments = { command = "touch ok" } } } }
end
END
sed 's/^  return/  if request.session:find "beta.0" then return "no" end\n&/' "$out/good.lua" >"$out/fair.lua"
sed 's/^  return/  if request.session:find "[bgd][a-z]*.[01]" then return "no" end\n&/' "$out/good.lua" >"$out/poor.lua"
"$1" bench create "$out/suite" --from-tasks "$out/tasks" --suite-id mini --name Mini --n 3 >/dev/null
for second in poor fair; do
    "$1" bench run "$out/suite" --backend none --student "good=lua:$out/good.lua" --student "org/second=lua:$out/$second.lua" \
        --out "$out/$second" >/dev/null 2>"$out/log" || { cat "$out/log"; exit 1; }
done
"$1" traj render "$out/fair" --compare "$out/poor" -o "$out/bench.html"
# A run that goes on: half of its lines now, the others when the browser has seen these.
mkdir "$out/live"
head -n 40 "$out/run/trajectories-00000.jsonl" >"$out/live/trajectories-00000.jsonl"
"$1" view "$out/live" >"$out/address" &
viewer=$!
trap 'kill $viewer 2>/dev/null || :; rm -rf "$out"' EXIT
timeout -k 5 500 "$py" "$here/pages.py" "$1" "$chromium" "$out"

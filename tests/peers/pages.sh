#!/bin/sh
# The pages in a real Chromium: every view, both themes, three widths, the keys, ten thousand rows, hostile texts; no error
# in the console, no request, nothing serious for axe-core. AGENTBOX_PICTURES=DIR keeps the pictures of docs/pages.md there.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no Chromium (setup test installs it)"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv pages "$python" playwright==1.49.1 axe-playwright-python==0.1.4 2>"$out/why") || skip "$(cat "$out/why")"
for kind in run hostile many; do
    "$1" script "$here/../pages/lab.lua" "$out" "$kind" "$kind"
done
"$1" traj render "$out/run" -o "$out/run.html"
"$1" traj render "$out/run#14b-lru-cache-1" -o "$out/one.html"
"$1" traj render "$out/hostile" -o "$out/hostile.html"
"$1" traj render "$out/many.jsonl" -o "$out/many.html"
# A run that goes on: half of its lines now, the others when the browser has seen these.
mkdir "$out/live"
head -n 40 "$out/run/trajectories-00000.jsonl" >"$out/live/trajectories-00000.jsonl"
"$1" view "$out/live" >"$out/address" &
viewer=$!
trap 'kill $viewer 2>/dev/null || :; rm -rf "$out"' EXIT
timeout -k 5 500 "$py" "$here/pages.py" "$1" "$chromium" "$out"

#!/bin/sh
# The Python AgentBox (agentbox-rl 0.2.1) loads the documents we write and writes them back equal, and we read what it
# writes. Unscored documents are left out: their reward is null, which that program has no word for.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv agentbox-rl-0.2.1 "$python" pydantic==2.14.4 --no-deps agentbox-rl==0.2.1 2>"$out/why") || skip "$(cat "$out/why")"
"$1" script "$here/agentbox_rl.lua" write "$out"
"$py" "$here/agentbox_rl.py" "$out"
"$1" script "$here/agentbox_rl.lua" read "$out"

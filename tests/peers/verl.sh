#!/bin/sh
# verl's AgentLoopOutput reads export -f verl. Its file imports torch and ray, so the two classes are taken out of it as they stand.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv verl-0.9.0 "$python" pydantic==2.14.4 numpy==2.4.6 --no-deps verl==0.9.0 2>"$out/why") || skip "$(cat "$out/why")"
"$1" script "$here/_exports.lua" "$out" verl verl:mode=stepwise verl:mode=strict
"$py" "$here/verl_rows.py" "$out"

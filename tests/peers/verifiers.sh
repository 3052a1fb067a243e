#!/bin/sh
# verifiers reads export -f verifiers (form=v1) as the traces.jsonl of one of its own runs. export -f prime-rl is checked here, too: prime-rl
# is on no registry, and makes its samples of verifiers' traces.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv verifiers-0.4.0-msgspec "$python" msgspec==0.23.0 verifiers==0.4.0 2>"$out/why") || skip "$(cat "$out/why")"
"$1" script "$here/_exports.lua" "$out" verifiers prime-rl prime-rl:mode=stepwise
"$py" "$here/verifiers_traces.py" "$out"

#!/bin/sh
# verifiers 0.1.14, the last one with RolloutOutput, reads export -f verifiers -O form=legacy as a saved results.jsonl.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv verifiers-0.1.14 "$python" pydantic==2.14.4 rich==15.0.0 typing_extensions==4.16.0 --no-deps verifiers==0.1.14 2>"$out/why") ||
    skip "$(cat "$out/why")"
"$1" script "$here/_exports.lua" "$out" verifiers:form=legacy
"$py" "$here/verifiers_legacy.py" "$out"

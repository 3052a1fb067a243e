#!/bin/sh
# Harbor's own loader reads what `task export` writes: every bundled task, with its settings, instruction and tests.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 12)
[ -n "$python" ] || skip "no Python 3.12 or newer, which harbor wants"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv harbor "$python" pydantic==2.14.4 pathspec==1.1.1 shortuuid==1.0.13 toml==0.10.2 pyyaml==6.0.4 --no-deps harbor==0.26.0 2>"$out/why") || skip "$(cat "$out/why")"
"$1" task export tasks -o "$out/theirs" >/dev/null 2>&1
"$py" "$here/harbor_tasks.py" "$out/theirs" tasks

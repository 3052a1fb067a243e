#!/bin/sh
# Harbor's own loader reads what `task export` writes: every bundled task, with its settings, instruction and tests.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 12 harbor pydantic==2.14.4 pathspec==1.1.1 shortuuid==1.0.13 toml==0.10.2 pyyaml==6.0.4 --no-deps harbor==0.26.0
"$1" task export tasks -o "$out/theirs" >/dev/null 2>&1
"$py" "$here/harbor_tasks.py" "$out/theirs" tasks

#!/bin/sh
# verifiers 0.1.14, the last one with RolloutOutput, reads export -f verifiers -O form=legacy as a saved results.jsonl.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 verifiers-0.1.14 pydantic==2.14.4 rich==15.0.0 typing_extensions==4.16.0 --no-deps verifiers==0.1.14
"$1" script "$here/_exports.lua" "$out" verifiers:form=legacy
"$py" "$here/verifiers_legacy.py" "$out"

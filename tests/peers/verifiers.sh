#!/bin/sh
# verifiers reads export -f verifiers (form=v1) as the traces.jsonl of one of its own runs. export -f prime-rl is checked here, too: prime-rl
# is on no registry, and makes its samples of verifiers' traces.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 verifiers-0.4.0-msgspec msgspec==0.23.0 verifiers==0.4.0
"$1" script "$here/_exports.lua" "$out" verifiers prime-rl prime-rl:mode=stepwise
"$py" "$here/verifiers_traces.py" "$out"

#!/bin/sh
# What OpenRLHF makes of an agent's result, of export -f openrlhf. Its files import torch, ray and vllm, so the pieces are taken out of
# them as they stand.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv openrlhf-0.11.2 "$python" numpy==2.4.6 --sources openrlhf==0.11.2 2>"$out/why") || skip "$(cat "$out/why")"
"$1" script "$here/_exports.lua" "$out" openrlhf trl:mode=strict
"$py" "$here/openrlhf_rows.py" "$out"

#!/bin/sh
# What OpenRLHF makes of an agent's result, of export -f openrlhf. Its files import torch, ray and vllm, so the pieces are taken out of
# them as they stand.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 openrlhf-0.11.2 numpy==2.4.6 --sources openrlhf==0.11.2
"$1" script "$here/_exports.lua" "$out" openrlhf trl:mode=strict
"$py" "$here/openrlhf_rows.py" "$out"

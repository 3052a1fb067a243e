#!/bin/sh
# verl's AgentLoopOutput reads export -f verl. Its file imports torch and ray, so the two classes are taken out of it as they stand.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 verl-0.9.0 pydantic==2.14.4 numpy==2.4.6 --no-deps verl==0.9.0
"$1" script "$here/_exports.lua" "$out" verl verl:mode=stepwise verl:mode=strict
"$py" "$here/verl_rows.py" "$out"

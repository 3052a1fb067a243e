#!/bin/sh
# The openai package judges what our models say and send: every response is a ChatCompletion, every request a valid set
# of parameters.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 openai-types openai==2.54.0 pydantic==2.14.4
"$1" script "$here/openai_types.lua" "$out/bodies.jsonl"
"$py" "$here/openai_types.py" "$out/bodies.jsonl"

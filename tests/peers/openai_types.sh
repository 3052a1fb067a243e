#!/bin/sh
# The openai package judges what our models say and send: every response is a ChatCompletion, every request a valid set
# of parameters.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv openai-types "$python" openai==2.54.0 pydantic==2.14.4 2>"$out/why") || skip "$(cat "$out/why")"
"$1" script "$here/openai_types.lua" "$out/bodies.jsonl"
"$py" "$here/openai_types.py" "$out/bodies.jsonl"

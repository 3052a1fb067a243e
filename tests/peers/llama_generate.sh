#!/bin/sh
# The same real engine as teacher, judge and student of a task factory: the whole path runs and the caps hold, whatever it answers.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
. "$here/_llama.sh"
llama_serve 4096
"$1" script "$here/llama_generate.lua" "$llama"

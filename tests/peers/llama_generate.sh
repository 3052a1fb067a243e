#!/bin/sh
# The same real engine as teacher and judge of a task factory (and as student, where its verdict lets a task through): the whole path
# runs and the caps hold, whatever it answers.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
. "$here/_llama.sh"
llama_serve 4096
"$1" script "$here/llama_generate.lua" "$llama"

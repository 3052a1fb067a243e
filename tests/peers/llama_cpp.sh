#!/bin/sh
# A real engine, llama.cpp with a 135M instruct model: chat, tools, streaming, usage, token ids through our client.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
. "$here/_llama.sh"
llama_serve 1024
"$1" script "$here/llama_cpp.lua" "$llama"

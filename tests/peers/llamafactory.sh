#!/bin/sh
# LLaMA-Factory reads export -f sharegpt, and -f openai, whose rows it takes too. Its packages' top modules import torch; what reads
# rows, and what makes a template's text of them, does not.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 llamafactory-0.9.5 datasets==5.2.0 typing_extensions==4.16.0 --no-deps llamafactory==0.9.5
"$1" script "$here/_exports.lua" chats "$out" sharegpt sharegpt:mixed=drop_text openai openai:tool_args=object
HF_HUB_OFFLINE=1 "$py" "$here/llamafactory_rows.py" "$out"

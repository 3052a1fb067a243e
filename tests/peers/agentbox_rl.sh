#!/bin/sh
# The Python AgentBox (agentbox-rl 0.2.1) loads the documents we write and writes them back equal, and we read what it
# writes. Unscored documents are left out: their reward is null, which that program has no word for.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 agentbox-rl-0.2.1 pydantic==2.14.4 --no-deps agentbox-rl==0.2.1
"$1" script "$here/agentbox_rl.lua" write "$out"
"$py" "$here/agentbox_rl.py" "$out"
"$1" script "$here/agentbox_rl.lua" read "$out"

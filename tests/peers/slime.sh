#!/bin/sh
# slime's Sample reads export -f slime. The slime on PyPI is another program; miles-rl is slime's descendant and carries its Sample and
# what turns samples into training data. Their files import torch and ray, so these pieces are taken out of them as they stand.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 miles-rl-0.0.2 pydantic==2.14.4 numpy==2.4.6 --no-deps miles-rl==0.0.2
"$1" script "$here/_exports.lua" "$out" slime slime:mode=stepwise,reward=split slime:mode=strict
"$py" "$here/slime_rows.py" "$out"

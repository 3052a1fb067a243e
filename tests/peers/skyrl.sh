#!/bin/sh
# SkyRL's validator judges export -f skyrl. Its file imports torch and ray, so the functions are taken out of it as they stand;
# 0.3.0 is the newest skyrl on PyPI.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 skyrl-0.3.0 pydantic==2.14.4 numpy==2.4.6 omegaconf==2.4.0 pandas==3.1.1 requests==2.34.2 func_timeout==4.3.5 \
    --no-deps skyrl==0.3.0 skyrl-gym==0.4.0
"$1" script "$here/_exports.lua" "$out" skyrl:failures=stub skyrl:mode=stepwise,failures=stub openai
"$py" "$here/skyrl_rows.py" "$out"

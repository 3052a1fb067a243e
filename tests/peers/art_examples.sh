#!/bin/sh
# The examples for ART, with the real package, up to the training call: groups are made, ART reads them, and what it finds to train on is
# exactly what was recorded.
set -eu
here=$(dirname "$0")
root=$(cd "$here/../.." && pwd)
. "$here/_peer.sh"
peer 12 openpipe-art-examples-0.5.23 pydantic==2.14.4 openai==2.54.0 anthropic==2.14.0 numpy==2.5.5 polars==2.1.0 orjson==3.13.0 \
    requests==2.34.2 tblib==3.2.2 aiohttp==3.14.5 python-dotenv==1.2.4 pyyaml==6.0.4 \
    tqdm==4.70.1 --no-deps openpipe-art==0.5.23
"$1" script "$here/_exports.lua" "$out" art:form=exchanges art:form=messages openai
"$py" "$here/art_rows.py" "$out" "$root/examples/art_grpo_offline.py" || status=1
cd "$out"
"$1" script "$root/examples/art_grpo_offline.lua" >lua.txt 2>lua.err || { cat lua.txt lua.err; exit 1; }
for groups in runs/grpo/groups.jsonl art-exchanges.jsonl; do
    "$py" "$root/examples/art_grpo_offline.py" "$groups" >"$groups.txt" || { cat "$groups.txt"; exit 1; }
done
grep -q "^fix_fizzbuzz: 4 trajectories, 0 exceptions, advantages \[" runs/grpo/groups.jsonl.txt
grep -q "^2 of 2 groups have something to learn from" runs/grpo/groups.jsonl.txt
grep -q "sampled tokens \[[0-9]*, [0-9]*, [0-9]*, [0-9]*\]" art-exchanges.jsonl.txt
echo "ok - the example makes groups that ART reads up to the training call"
PYTHONPATH=$root/python/agentbox/src PYTHONDONTWRITEBYTECODE=1 "$py" "$root/tests/peers/art_online.py" "$1" "$out" || status=1
exit ${status:-0}

#!/bin/sh
# Suites go both ways between the Python AgentBox (agentbox-rl 0.2.1, whose hash is docs/benchmarks.md's) and us: what it
# writes validates and runs here, what is made here validates there, and its report tools read our results.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 agentbox-rl-0.2.1-suite agentbox-rl==0.2.1 hatchling==1.27.0
case $1 in /*) box=$1 ;; *) box=$PWD/$1 ;; esac
here=$(cd "$here" && pwd)

# The suite that comes with its source; its hash is AgentBox's own word.
source=$(dirname "$(dirname "$py")")/source
[ -e "$source"/*.tar.gz ] || timeout 200 "$(dirname "$py")/pip" download --disable-pip-version-check --no-deps --no-build-isolation \
    --no-binary :all: agentbox-rl==0.2.1 -d "$source" >"$out/why" 2>&1 || true
if [ -e "$source"/*.tar.gz ]; then
    tar xzf "$source"/*.tar.gz -C "$out"
    cp -r "$out"/agentbox_rl-0.2.1/examples/benchmarks/coding-mini "$out/mini"
    "$box" bench validate "$out/mini" >"$out/said"
    grep "content hash ok: e5fd126c08f924d17f09e471b09425fc426aa4ca754c080e63d63b02a74d5cd5" "$out/said"
    "$box" bench run "$out/mini" --image host --mock --task fix_fizzbuzz_001 --out "$out/mini-run" >"$out/said" 2>&1 || { cat "$out/said"; exit 1; }
    if grep differs "$out/said"; then exit 1; fi
    echo "ok - the suite of AgentBox's source has the hash that it says, and runs here"
else
    echo "# no source of agentbox-rl: $(tail -1 "$out/why")"
fi

# Theirs, with odd values, validates here and runs; changed, it does not.
"$py" "$here/agentbox_suite.py" write "$out/theirs"
"$box" bench validate --strict "$out/theirs"
"$box" bench run "$out/theirs" --backend none --strict --student "s=lua:$here/agentbox_suite.lua" --out "$out/run" --n 2
"$py" "$here/agentbox_suite.py" report "$out/run"
sed -i 's/print/Print/' "$out/theirs/tasks/odd_1/files/m.py"
if "$box" bench validate "$out/theirs" >/dev/null; then echo "a changed suite validates"; exit 1; fi

# Ours validates there, after their freezing too.
"$box" bench create "$out/ours" --from-tasks "$out/run/suite_snapshot/tasks" --suite-id ours --name Ours --n 3 --seed 7 \
    --setup-check 'sh=test "$HOME"' --max-steps 9
"$py" "$here/agentbox_suite.py" check "$out/ours"
"$box" bench validate "$out/ours" >"$out/said" || { cat "$out/said"; exit 1; } # the seal notices their copy's other line ends
mkdir "$out/odd"
"$box" script "$here/agentbox_suite.lua" odd "$out/odd"
"$py" "$here/agentbox_suite.py" hash "$out/odd" "$("$box" script "$here/agentbox_suite.lua" hash "$out/odd")"

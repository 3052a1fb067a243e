#!/bin/sh
# The statistics of suites against scipy, on random data: tests, intervals, correlations, pass@k.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv scipy-1.16.2 "$python" numpy==2.3.3 scipy==1.16.2 2>"$out/why") || skip "$(cat "$out/why")"
"$py" "$here/scipy_stats.py" cases >"$out/cases.json"
"$1" script "$here/scipy_stats.lua" "$out/cases.json" >"$out/answers.json"
"$py" "$here/scipy_stats.py" check "$out/cases.json" "$out/answers.json"

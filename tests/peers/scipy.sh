#!/bin/sh
# The statistics of suites against scipy, on random data: tests, intervals, correlations, pass@k.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 scipy-1.16.2 numpy==2.3.3 scipy==1.16.2
"$py" "$here/scipy_stats.py" cases >"$out/cases.json"
"$1" script "$here/scipy_stats.lua" "$out/cases.json" >"$out/answers.json"
"$py" "$here/scipy_stats.py" check "$out/cases.json" "$out/answers.json"

#!/bin/sh
# prometheus_client reads the page of numbers that a run serves, as a scrape would get it.
set -eu
here=$(dirname "$0")
. "$here/_venv.sh"
python=$(newest_python 11)
[ -n "$python" ] || skip "no Python 3.11 or newer"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
py=$(venv prometheus "$python" prometheus-client==0.23.1 2>"$out/why") || skip "$(cat "$out/why")"
"$1" script "$here/prometheus.lua" "$out/page" 2>/dev/null
"$py" "$here/prometheus.py" "$out/page"

#!/bin/sh
# prometheus_client reads the page of numbers that a run serves, as a scrape would get it.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 prometheus prometheus-client==0.23.1
"$1" script "$here/prometheus.lua" "$out/page" 2>/dev/null
"$py" "$here/prometheus.py" "$out/page"

#!/bin/sh
# docs/cli.md is what the program says about itself.
"$1" help --markdown | diff -u docs/cli.md - || { echo "docs/cli.md is stale: run make doc"; exit 1; }

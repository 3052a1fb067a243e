#!/bin/sh
# Compares what report.sh prints for the example with what it should print.
sh report.sh <access.log >actual.txt || exit 1
diff expected.txt actual.txt

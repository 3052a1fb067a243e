#!/bin/sh
# prune.sh [-d DAYS] [-w WEEKS] [-m MONTHS] [-k] < NAMES; see RULES.md
days=7 weeks=4 months=6
cat > /dev/null

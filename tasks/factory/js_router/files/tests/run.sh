#!/bin/sh
# Runs every tests/*.test.js and adds up. The last line is "# pass N fail M"; it is missing when a file gave no verdict.
pass=0 fail=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for file in tests/*.test.js; do
    node "$file" > "$log" 2>&1
    status=$?
    cat "$log"
    [ $status -gt 1 ] && exit $status
    set -- $(tail -n 1 "$log")
    [ "$1 $2 $4" = "# pass fail" ] || { echo "$file gave no verdict"; exit 2; }
    pass=$((pass + $3)) fail=$((fail + $5))
done
echo "# pass $pass fail $fail"
[ $fail -eq 0 ] && [ $pass -gt 0 ]

#!/bin/sh
# Builds each tests/*.c with all sources and runs it. The last line is "# pass N fail M"; it is missing when something could not
# be built or gave no verdict.
pass=0 fail=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sources=$(find . -name '*.c' ! -path './tests/*')
for file in tests/*.c; do
    cc -std=gnu11 -g -Wall -I. -Isrc -Itests -o "$dir/test" $sources "$file" -lm || { echo "$file: build failed"; exit 2; }
    "$dir/test" > "$dir/log" 2>&1
    cat "$dir/log"
    set -- $(tail -n 1 "$dir/log")
    [ "$1 $2 $4" = "# pass fail" ] || { echo "$file gave no verdict"; exit 2; }
    pass=$((pass + $3)) fail=$((fail + $5))
done
echo "# pass $pass fail $fail"
[ $fail -eq 0 ] && [ $pass -gt 0 ]

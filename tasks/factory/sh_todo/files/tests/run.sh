#!/bin/sh
# Runs every function test_NAME() of tests/test_*.sh in a shell of its own, which must come to its end. The last line is
# "# pass N fail M"; it is missing when a program was not there. The order is shuffled by CHECK_SEED.
pass=0 fail=0
for file in tests/test_*.sh; do
    names=$(sed -n 's/^\(test_[A-Za-z0-9_]*\)().*/\1/p' "$file")
    if [ -n "$CHECK_SEED" ]; then
        names=$(printf '%s\n' $names | awk -v seed="$CHECK_SEED" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort -n | cut -f 2)
    fi
    for name in $names; do
        sh -c 'set -e; . ./tests/check.sh; . "./$1"; "$2"; exit 77' sh "$file" "$name"
        case $? in
        77) pass=$((pass + 1)) && echo "ok $name" ;;
        126 | 127) echo "$name: a program is missing" && exit 127 ;;
        *) fail=$((fail + 1)) && echo "not ok $name" ;;
        esac
    done
done
echo "# pass $pass fail $fail"
[ $fail -eq 0 ] && [ $pass -gt 0 ]

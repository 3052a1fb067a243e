#!/bin/sh
# More lines than the example has: sizes past 2^31, quotes inside the request, no lines at all.
[ -z "$(sh report.sh </dev/null)" ] || exit 1
actual=$(printf '%s\n' \
    'h - - [d z] "GET /\"q\" HTTP/1.1" 200 3000000000 "-" "-"' \
    'h - - [d z] "GET / HTTP/1.1" 200 3000000000 "-" "-"' \
    'h - - [d z] "GET / HTTP/1.1" 99 1 "-" "-"' \
    '"GET / HTTP/1.1" 500 1' | sh report.sh) || exit 1
[ "$actual" = "200 2 6000000000" ]

# check.sh - read before each file of tests: check WHAT EXPECTED ACTUAL
check() {
    [ "$2" = "$3" ] && return 0
    printf '# %s: expected "%s", got "%s"\n' "$1" "$2" "$3"
    exit 1
}

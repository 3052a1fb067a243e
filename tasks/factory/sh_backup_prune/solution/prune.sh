#!/bin/sh
# prune.sh [-d DAYS] [-w WEEKS] [-m MONTHS] [-k] < NAMES; see RULES.md
set -u
LC_ALL=C
export LC_ALL

fail() {
    echo "prune: $*" >&2
    exit 2
}

number() {
    case $2 in
    '' | *[!0-9]* | ?????*) fail "$1 wants a number from 0 to 9999" ;;
    esac
}

days=7 weeks=4 months=6 keep=0
while getopts d:w:m:k option; do
    case $option in
    d) number -d "$OPTARG" && days=$OPTARG ;;
    w) number -w "$OPTARG" && weeks=$OPTARG ;;
    m) number -m "$OPTARG" && months=$OPTARG ;;
    k) keep=1 ;;
    *) fail "usage: prune.sh [-d DAYS] [-w WEEKS] [-m MONTHS] [-k]" ;;
    esac
done
[ "$OPTIND" -gt $# ] || fail "no other arguments are taken"

# Newest first within a prefix: date and time come first, then the name.
awk '
    function days_in(y, m) {
        if (m == 2) return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0 ? 29 : 28
        return m == 4 || m == 6 || m == 9 || m == 11 ? 30 : 31
    }
    function is_backup(name,    stamp) {
        if (name !~ /.-[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]-[0-9][0-9][0-9][0-9]\.tar\.gz$/) return 0
        stamp = substr(name, length(name) - 19, 13)
        if (substr(stamp, 5, 2) + 0 < 1 || substr(stamp, 5, 2) + 0 > 12) return 0
        if (substr(stamp, 7, 2) + 0 < 1 || substr(stamp, 7, 2) + 0 > days_in(substr(stamp, 1, 4) + 0, substr(stamp, 5, 2) + 0)) return 0
        return substr(stamp, 10, 2) + 0 <= 23 && substr(stamp, 12, 2) + 0 <= 59
    }
    is_backup($0) { print substr($0, length($0) - 19, 13) " " $0; next }
    { other++ }
    END { if (other) print "prune: " other " other lines" > "/dev/stderr" }
' | sort -r -u | awk -v days="$days" -v weeks="$weeks" -v months="$months" -v keep="$keep" '
    # Days since a Monday long ago.
    function day_number(y, m, d) {
        if (m < 3) { y--; m += 12 }
        return 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + d - 1 + 2
    }
    # Whether this is the newest of one of the last `most` periods of its prefix.
    function newest(kind, prefix, period, most,    key) {
        key = kind SUBSEP prefix
        if ((key in last) && last[key] == period) return 0
        last[key] = period
        return ++count[key] <= most
    }
    {
        name = substr($0, 15)
        prefix = substr(name, 1, length(name) - 21)
        day = substr($0, 1, 8)
        week = int(day_number(substr(day, 1, 4) + 0, substr(day, 5, 2) + 0, substr(day, 7, 2) + 0) / 7)
        kept = newest("all", prefix, "once", 1)
        kept += newest("day", prefix, "d" day, days)
        kept += newest("week", prefix, "w" week, weeks)
        kept += newest("month", prefix, "m" substr(day, 1, 6), months)
        if ((kept > 0) == (keep + 0 > 0)) print name
    }
' | sort

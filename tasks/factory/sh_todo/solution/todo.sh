#!/bin/sh
# todo.sh add|list|done|undo|rm|pri|stats ...; see SPEC.md
file=${TODO_FILE:-todo.tsv}
set -u
set -f
LC_ALL=C
export LC_ALL

fail() {
    status=$1
    shift
    printf 'todo: %s\n' "$*" >&2
    exit "$status"
}

usage() { fail 2 "usage: todo.sh add|list|done|undo|rm|pri|stats ... (SPEC.md)"; }

entries() {
    [ ! -f "$file" ] || cat -- "$file"
}

check_file() {
    wrong=$(entries | awk -F '\t' '
        NR == 1 && /^# last [0-9]+$/ { next }
        NF == 4 && $1 ~ /^[1-9][0-9]*$/ && ($2 == "open" || $2 == "done") && $3 ~ /^[A-Z]$/ && $4 != "" { next }
        { print NR; exit }')
    [ -z "$wrong" ] || fail 3 "$file: line $wrong is no entry"
}

last_id() {
    entries | awk -F '\t' '
        NR == 1 && /^#/ { split($0, words, " "); last = words[3] + 0; next }
        $1 + 0 > last { last = $1 + 0 }
        END { print last + 0 }'
}

# Puts standard input in the file's place, behind its first line.
replace() {
    { printf '# last %s\n' "$1" && cat; } > "$file.new" && mv -- "$file.new" "$file"
}

priority_of() {
    case $1 in
    [A-Za-z]) printf '%s\n' "$1" | tr 'a-z' 'A-Z' ;;
    *) fail 2 "a priority is a letter, not $1" ;;
    esac
}

# command WORD...: reads the options of add and list and does it. Words go round once, so that "$@" holds the texts at the end.
with_words() {
    command=$1
    shift
    priority=M all=0 front=1 literal=0 n=$#
    while [ "$n" -gt 0 ]; do
        word=$1
        shift
        n=$((n - 1))
        case $literal$front:$command:$word in
        0?:*:--) literal=1 && continue ;;
        01:list:-a) all=1 && continue ;;
        01:add:-p)
            [ "$n" -gt 0 ] || usage
            priority=$(priority_of "$1") || exit 2
            shift
            n=$((n - 1))
            continue
            ;;
        0?:*:-?*) usage ;;
        esac
        front=0
        set -- "$@" "$word"
    done
    "$command" "$@"
}

add() {
    text=$(printf '%s' "$*" | tr '\t\n' '  ')
    case $text in
    *[!\ ]*) ;;
    *) fail 2 "there is no text" ;;
    esac
    check_file
    id=$(($(last_id) + 1))
    { entries | grep -v '^#'; printf '%s\topen\t%s\t%s\n' "$id" "$priority" "$text"; } | replace "$id"
    echo "$id"
}

list() {
    check_file
    entries | grep -v '^#' | awk -F '\t' -v all="$all" '
        BEGIN {
            for (i = 1; i < ARGC; i++) { words[i] = tolower(ARGV[i]); ARGV[i] = "" }
            n = ARGC - 1
        }
        {
            if ($2 == "done" && !(all + 0)) next
            for (i = 1; i <= n; i++) if (!index(tolower($4), words[i])) next
            print $3 "\t" $1 "\t" ($2 == "done" ? $1 " x " $3 " " $4 : $1 " " $3 " " $4)
        }' "$@" | sort -t '	' -k 1,1 -k 2,2n | cut -f 3-
}

# change ACTION VALUE ID...
change() {
    action=$1
    value=$2
    shift 2
    [ $# -gt 0 ] || usage
    for id in "$@"; do
        case $id in
        '' | *[!0-9]*) fail 2 "not an ID: $id" ;;
        esac
    done
    missing=$(entries | grep -v '^#' | awk -F '\t' -v wanted="$*" '
        { there[$1 + 0] = 1 }
        END { n = split(wanted, ids, " "); for (i = 1; i <= n; i++) if (!((ids[i] + 0) in there)) { print ids[i]; exit } }')
    [ -z "$missing" ] || fail 1 "there is no entry $missing"
    last=$(last_id)
    new=$(entries | grep -v '^#' | awk -F '\t' -v OFS='\t' -v wanted="$*" -v action="$action" -v value="$value" '
        BEGIN { n = split(wanted, ids, " "); for (i = 1; i <= n; i++) hit[ids[i] + 0] = 1 }
        ($1 + 0) in hit && action == "rm" { next }
        ($1 + 0) in hit && action == "state" { $2 = value }
        ($1 + 0) in hit && action == "pri" { $3 = value }
        { print }
        END { print "." }')
    new=${new%.}
    old=$(entries | grep -v '^#'; echo .)
    old=${old%.}
    [ "$new" = "$old" ] || printf '%s' "$new" | replace "$last"
}

[ $# -gt 0 ] || usage
command=$1
shift
case $command in
add | list) with_words "$command" "$@" ;;
done) check_file && change state "done" "$@" ;;
undo) check_file && change state open "$@" ;;
rm) check_file && change rm - "$@" ;;
pri)
    [ $# -gt 0 ] || usage
    priority=$(priority_of "$1") || exit 2
    shift
    check_file
    change pri "$priority" "$@"
    ;;
stats)
    [ $# = 0 ] || usage
    check_file
    entries | awk -F '\t' '{ n[$2]++ } END { print "open " n["open"] + 0; print "done " n["done"] + 0 }'
    ;;
*) usage ;;
esac

#!/bin/sh
# manifest.sh create FOLDER | check FOLDER MANIFEST | compare OLD NEW; see SPEC.md
set -u
LC_ALL=C
export LC_ALL

fail() {
    printf 'manifest: %s\n' "$*" >&2
    exit 2
}

# Prints the line of each path; "!" for what is skipped.
describe='
for path in "$@"; do
    name=${path#./}
    case $name in
    *"
"*)
        printf "manifest: skipped, its name has a line end: %s\n" "$name" >&2
        echo "!"
        continue
        ;;
    esac
    if [ -L "$path" ]; then
        printf "l %s - %s\n" "$(readlink -n -- "$path" | sha256sum | cut -d " " -f 1)" "$name"
    elif [ -d "$path" ]; then
        printf "d - - %s\n" "$name"
    elif [ -f "$path" ]; then
        mode=-
        case $(ls -ld -- "$path") in
        ???[xs]*) mode=x ;;
        esac
        printf "f %s %s %s\n" "$(sha256sum < "$path" | cut -d " " -f 1)" "$mode" "$name"
    else
        printf "manifest: skipped, neither file nor folder nor link: %s\n" "$name" >&2
        echo "!"
    fi
done
'

create() {
    case $1 in
    /*) folder=$1 ;;
    *) folder=./$1 ;;
    esac
    [ -d "$folder" ] || fail "no folder: $1"
    (cd -- "$folder/" && find . ! -path . \( ! -type d -o -empty \) -exec sh -c "$describe" sh {} +) | sort -t ' ' -k 4 | awk '
        $0 == "!" { skipped = 1; next }
        { print }
        END { exit skipped }'
}

check_form() {
    [ -f "$1" ] && [ -r "$1" ] || fail "cannot be read: $1"
    wrong=$(awk '
        {
            path = $0
            sub(/^[^ ]* [^ ]* [^ ]* /, "", path)
            good = /^f [0-9a-f]+ [x-] ./ || /^l [0-9a-f]+ - ./
            good = good && length($2) == 64 || /^d - - ./
            if (!good || (path in seen)) { print NR; exit }
            seen[path] = 1
        }' < "$1")
    [ -z "$wrong" ] || fail "$1: line $wrong is no entry, or its path is there twice"
}

# The differences between the manifests $1 and $2, whose forms have been checked.
differences() {
    { sed 's/^/o/' < "$1"; sed 's/^/n/' < "$2"; } | awk '
        # What a file is known by when it moves; "" for what is never taken for moved.
        function key_of(line,    w) {
            split(line, w, " ")
            return w[1] == "f" && w[2] != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" ? w[2] w[3] : ""
        }
        function add(path, text,    i) {
            for (i = ++count; i > 1 && paths[i - 1] > path; i--) {
                paths[i] = paths[i - 1]
                texts[i] = texts[i - 1]
            }
            paths[i] = path ""
            texts[i] = text
        }
        {
            line = path = substr($0, 2)
            sub(/^[^ ]* [^ ]* [^ ]* /, "", path)
            if (/^o/) old[path] = line
            else new[path] = line
        }
        END {
            for (path in old) if (!(path in new)) { key = key_of(old[path]); gone[key]++; from[key] = path }
            for (path in new) if (!(path in old)) { key = key_of(new[path]); come[key]++; to[key] = path }
            for (path in old) {
                split(old[path], a, " ")
                split(new[path], b, " ")
                key = key_of(old[path])
                if (b[1] == "" && key != "" && gone[key] == 1 && come[key] == 1) {
                    add(path, "R " path " -> " to[key])
                    arrived[to[key]] = 1
                } else if (b[1] == "") add(path, "- " path)
                else if (a[1] != b[1] || a[2] != b[2]) add(path, "M " path)
                else if (a[3] != b[3]) add(path, "X " path)
            }
            for (path in new) if (new[path] != "" && !(path in old) && !(path in arrived)) add(path, "+ " path)
            for (i = 1; i <= count; i++) print texts[i]
            exit count > 0
        }'
}

case ${1:-}:$# in
create:2) create "$2" ;;
check:3)
    check_form "$3"
    [ -d "$2" ] || fail "no folder: $2"
    now=$(mktemp)
    trap 'rm -f "$now"' EXIT
    create "$2" > "$now"
    skipped=$?
    differences "$3" "$now" && exit $skipped
    ;;
compare:3)
    check_form "$2"
    check_form "$3"
    differences "$2" "$3"
    ;;
*) fail "usage: manifest.sh create FOLDER | check FOLDER MANIFEST | compare OLD NEW" ;;
esac

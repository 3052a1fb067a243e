#!/bin/sh
# deploy.sh install ROOT NAME SOURCE | rollback ROOT | list ROOT; see SPEC.md
set -u

say() { printf 'deploy: %s\n' "$*" >&2; }

bad_name() {
    case $1 in
    '' | .* | */* | *"
"*) return 0 ;;
    esac
    return 1
}

# Points a link of ROOT at a target, in one step.
point() {
    rm -f "$root/.link"
    ln -s -- "$2" "$root/.link"
    mv -T -- "$root/.link" "$root/$1"
}

target_of() { readlink -- "$root/$1" 2>/dev/null || :; }

# Removes the oldest releases until 3 are left, but never the current and the previous one.
prune() {
    left=$(wc -l < "$root/history")
    current=$(target_of current)
    previous=$(target_of previous)
    : > "$root/history.new"
    while IFS= read -r old; do
        if [ "$left" -gt 3 ] && [ "releases/$old" != "$current" ] && [ "releases/$old" != "$previous" ]; then
            rm -rf -- "$root/releases/$old"
            left=$((left - 1))
        else
            printf '%s\n' "$old" >> "$root/history.new"
        fi
    done < "$root/history"
    mv -- "$root/history.new" "$root/history"
}

install() {
    name=$1
    source=$2
    case $source in /*) ;; *) source=./$source ;; esac
    if bad_name "$name"; then
        say "not a name for a release: $name"
        return 2
    fi
    if [ -e "$root/releases/$name" ] || [ ! -d "$source" ]; then
        say "$name is there already, or $source is no folder"
        return 2
    fi
    mkdir -p -- "$root/releases"
    new=$root/releases/.new
    rm -rf -- "$new"
    mkdir -- "$new" && cp -R -- "$source/." "$new/" || return 1
    if [ -f "$new/check.sh" ] && ! (cd -- "$new" && sh ./check.sh) >&2; then
        say "the check of $name failed"
        rm -rf -- "$new"
        return 1
    fi
    mv -T -- "$new" "$root/releases/$name"
    printf '%s\n' "$name" >> "$root/history"
    before=$(target_of current)
    [ -z "$before" ] || point previous "$before"
    point current "releases/$name"
    prune
}

rollback() {
    previous=$(target_of previous)
    current=$(target_of current)
    if [ -z "$previous" ]; then
        say "there is no previous release"
        return 1
    fi
    point current "$previous"
    point previous "$current"
}

list() {
    [ -f "$root/history" ] || return 0
    current=$(target_of current)
    while IFS= read -r name; do
        mark=' '
        [ "releases/$name" != "$current" ] || mark='*'
        printf '%s %s\n' "$mark" "$name"
    done < "$root/history"
}

command=${1:-}
root=${2:-}
case $root in
/*) ;;
*) root=./$root ;;
esac
case $command:$# in
install:4) install "$3" "$4" ;;
rollback:2) rollback ;;
list:2) list ;;
*)
    say "usage: deploy.sh install ROOT NAME SOURCE | rollback ROOT | list ROOT"
    exit 2
    ;;
esac

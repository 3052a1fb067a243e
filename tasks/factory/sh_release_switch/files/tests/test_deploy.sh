set_up() {
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    mkdir "$dir/src"
    echo one > "$dir/src/page"
}

deploy() {
    status=0
    said=$(sh deploy.sh "$@" 2> "$dir/err") || status=$?
}

install() {
    echo "$1" > "$dir/src/page"
    deploy install "$dir/root" "$1" "$dir/src"
    check "status of installing $1" 0 $status
}

names() { ls -A "$dir/root/releases" | LC_ALL=C sort | tr '\n' ' '; }
page() { cat "$dir/root/current/page"; }

test_install() {
    set_up
    echo x > "$dir/src/.hidden"
    install v1
    check "output" "" "$said$(cat "$dir/err")"
    check "link" releases/v1 "$(readlink "$dir/root/current")"
    check "page" v1 "$(page)"
    check "hidden files" x "$(cat "$dir/root/current/.hidden")"
    check "nothing else" "v1 " "$(names)"
    check "history" v1 "$(cat "$dir/root/history")"
    check "no previous" "" "$(readlink "$dir/root/previous" || :)"
}

test_list() {
    set_up
    install zebra
    install apple
    deploy list "$dir/root"
    check "list" "  zebra
* apple" "$said"
    deploy list "$dir/nowhere"
    check "list of nothing" "0" "$status$said"
}

test_strange_names() {
    set_up
    install 'a b'
    install '-n'
    install '*'
    deploy list "$dir/root"
    check "list" "  a b
  -n
* *" "$said"
    check "page" '*' "$(page)"
    install 'x\y'
    check "the oldest is gone" '* -n x\y ' "$(names)"
    check "page" 'x\y' "$(page)"
    deploy rollback "$dir/root"
    check "page after going back" '*' "$(page)"
}

test_roots_with_blanks() {
    set_up
    deploy install "$dir/my root" v1 "$dir/src"
    check "status" 0 $status
    check "page" one "$(cat "$dir/my root/current/page")"
}

test_refused_names() {
    set_up
    install v1
    for name in '' . .. .new ../x a/b v1 'a
b'; do
        deploy install "$dir/root" "$name" "$dir/src"
        check "status of '$name'" 2 $status
        [ -s "$dir/err" ] || check "message for '$name'" "something" ""
    done
    deploy install "$dir/root" v2 "$dir/src/page"
    check "a file as source" 2 $status
    deploy install "$dir/root" v2 "$dir/nowhere"
    check "no source" 2 $status
    check "nothing changed" "v1 " "$(names)"
    check "history" v1 "$(cat "$dir/root/history")"
}

test_failed_check() {
    set_up
    install v1
    echo 'echo to out; test -f page && test "$(cat page)" != v2' > "$dir/src/check.sh"
    echo v2 > "$dir/src/page"
    deploy install "$dir/root" v2 "$dir/src"
    check "status" 1 $status
    check "output" "" "$said"
    check "error has the check's output" 1 "$(grep -c '^to out$' "$dir/err")"
    check "page" v1 "$(page)"
    check "releases" "v1 " "$(names)"
    check "history" v1 "$(cat "$dir/root/history")"
    check "no previous" "" "$(readlink "$dir/root/previous" || :)"
    install v3
    check "a check that passes" v3 "$(page)"
}

test_left_over_copy() {
    set_up
    mkdir -p "$dir/root/releases/.new"
    echo old > "$dir/root/releases/.new/junk"
    install v1
    check "no junk" "page" "$(ls -A "$dir/root/current/")"
    check "releases" "v1 " "$(names)"
}

test_rollback() {
    set_up
    install v1
    deploy rollback "$dir/root"
    check "nothing to go back to" 1 $status
    [ -s "$dir/err" ] || check "message" "something" ""
    check "page" v1 "$(page)"
    install v2
    deploy rollback "$dir/root"
    check "status" 0 "$status$said"
    check "page" v1 "$(page)"
    check "previous" releases/v2 "$(readlink "$dir/root/previous")"
    deploy rollback "$dir/root"
    check "and forth" v2 "$(page)"
}

test_age_decides() {
    set_up
    for name in v9 v10 v11; do install $name; done
    install v12
    check "three are left" "v10 v11 v12 " "$(names)"
    check "history" "v10 v11 v12 " "$(tr '\n' ' ' < "$dir/root/history")"
    install a1
    check "three are left" "a1 v11 v12 " "$(names)"
}

test_current_and_previous_stay() {
    set_up
    for name in a b c; do install $name; done
    ln -sfn releases/a "$dir/root/current"
    ln -sfn releases/c "$dir/root/previous"
    install d
    check "a was current, so it is the previous one now" "a c d " "$(names)"
    check "previous" releases/a "$(readlink "$dir/root/previous")"
}

test_the_link_is_always_there() {
    set_up
    install v1
    mkdir "$dir/bin"
    # Each program that the script runs first looks whether the link is there.
    for program in rm ln mv cp; do
        printf '#!/bin/sh\n[ -e "%s/root/current/page" ] || echo gone >> "%s/log"\nexec %s "$@"\n' \
            "$dir" "$dir" "$(command -v $program)" > "$dir/bin/$program"
        chmod +x "$dir/bin/$program"
    done
    PATH=$dir/bin:$PATH
    for name in v2 v3 v4; do install $name; done
    deploy rollback "$dir/root"
    check "status" 0 $status
    check "the link was missing" "" "$(cat "$dir/log" 2>/dev/null || :)"
    check "page" v3 "$(page)"
}

test_usage() {
    set_up
    deploy
    check "nothing" 2 $status
    deploy install "$dir/root" v1
    check "too few" 2 $status
    deploy list "$dir/root" x
    check "too many" 2 $status
    deploy nope "$dir/root"
    check "unknown" 2 $status
    [ -s "$dir/err" ] || check "message" "something" ""
}

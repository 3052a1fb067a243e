tab=$(printf '\t')

set_up() {
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    mkdir "$dir/d"
    TODO_FILE="$dir/d/my list"
    export TODO_FILE
}

todo() {
    status=0
    said=$(sh todo.sh "$@" 2> "$dir/err") || status=$?
}

says() {
    expected=$1
    shift
    todo "$@"
    check "todo $*" "0:$expected" "$status:$said"
}

refuses() {
    expected=$1
    shift
    before=$(cat "$TODO_FILE" 2>/dev/null || echo none)
    todo "$@"
    check "status of todo $*" "$expected:" "$status:$said"
    check "message of todo $*" 1 "$(grep -c '^todo: ' "$dir/err")"
    check "file after todo $*" "$before" "$(cat "$TODO_FILE" 2>/dev/null || echo none)"
}

test_add_and_list() {
    set_up
    says "" list
    says 1 add buy milk
    says 2 add -p a "call  home"
    says 3 add -p z last
    says "2 A call  home
1 M buy milk
3 Z last" list
    check "file" "# last 3
1${tab}open${tab}M${tab}buy milk
2${tab}open${tab}A${tab}call  home
3${tab}open${tab}Z${tab}last" "$(cat "$TODO_FILE")"
    check "no other files" "my list" "$(ls -A "$dir/d")"
}

test_texts_come_out_as_they_went_in() {
    set_up
    says 1 add '\n "$HOME" `x` %s & *' "it's" '\\'
    says "1 M \\n \"\$HOME\" \`x\` %s & * it's \\\\" list
    says 2 add "a${tab}b
c"
    says '2 M a b c' list 'A B'
    says "" done 1
    says "1 x M \\n \"\$HOME\" \`x\` %s & * it's \\\\" list -a '\N'
}

test_sorted_by_priority_then_number() {
    set_up
    for n in 1 2 3 4 5 6 7 8 9 10 11; do says $n add "n$n"; done
    says "" pri B 11 2
    says "2 B n2
11 B n11
1 M n1
3 M n3
4 M n4
5 M n5
6 M n6
7 M n7
8 M n8
9 M n9
10 M n10" list
}

test_words() {
    set_up
    says 1 add "Fix the a.c parser"
    says 2 add "fix ABC"
    says "1 M Fix the a.c parser
2 M fix ABC" list FIX
    says "1 M Fix the a.c parser" list a.c
    says "1 M Fix the a.c parser" list parser fix
    says "" list parser abc
    says "" list '.*'
    says "" list 'M'"$tab"
}

test_done_and_undo() {
    set_up
    for n in 1 2 3; do says $n add "n$n"; done
    says "" done 3 1 3
    says "2 M n2" list
    says "1 x M n1
2 M n2
3 x M n3" list -a
    says "open 1
done 2" stats
    says "" undo 3
    says "2 M n2
3 M n3" list
}

test_numbers_are_not_used_again() {
    set_up
    says 1 add one
    says 2 add two
    says "" rm 2
    says 3 add three
    says "" rm 1 3
    says "" list -a
    check "file" "# last 3" "$(cat "$TODO_FILE")"
    says 4 add four
    printf '7%sopen%sM%sseven\n' "$tab" "$tab" "$tab" > "$TODO_FILE"
    says 8 add eight
    check "file" "# last 8
7${tab}open${tab}M${tab}seven
8${tab}open${tab}M${tab}eight" "$(cat "$TODO_FILE")"
}

test_all_or_nothing() {
    set_up
    says 1 add one
    says 2 add two
    refuses 1 done 1 9
    check "the message names it" 1 "$(grep -c 9 "$dir/err")"
    refuses 1 rm 3 1
    refuses 1 undo 12
    refuses 1 pri A 1 2 3
}

test_what_changes_nothing_does_not_touch_the_file() {
    set_up
    says 1 add one
    says "" done 1
    ln "$TODO_FILE" "$dir/same"
    says "" done 1
    says "" pri m 1
    says "1 x M one" list -a
    check "the same file" "$(ls -i "$dir/same" | cut -d ' ' -f 1)" "$(ls -i "$TODO_FILE" | sed 's/^ *//' | cut -d ' ' -f 1)"
    says "" undo 1
    check "another file, renamed over it" "# last 1
1${tab}done${tab}M${tab}one" "$(cat "$dir/same")"
}

test_dashes() {
    set_up
    says 1 add -- -p is text
    says "1 M -p is text" list -- -p
    says 2 add -p B -- --
    says "2 B --" list -- --
    refuses 2 add -x
    refuses 2 add text -x
    refuses 2 list -b
    says 3 add -
}

test_usage() {
    set_up
    says 1 add one
    refuses 2
    refuses 2 nope
    refuses 2 add
    refuses 2 add ""
    refuses 2 add "  " "$tab"
    refuses 2 add -p
    refuses 2 add -p AB text
    refuses 2 add -p 1 text
    refuses 2 done
    refuses 2 rm
    refuses 2 done x
    refuses 2 done 1 -1
    refuses 2 undo ""
    refuses 2 rm '1 1'
    refuses 2 pri
    refuses 2 pri A
    refuses 2 pri 1 1
    refuses 2 stats more
}

test_damaged_files() {
    set_up
    for line in "" "text" "0${tab}open${tab}M${tab}x" "1${tab}shut${tab}M${tab}x" "1${tab}open${tab}m${tab}x" "1${tab}open${tab}M${tab}" \
        "1${tab}open${tab}M" "1${tab}open${tab}M${tab}x${tab}y" "# last 1"; do
        printf '# last 5\n1%sopen%sM%sgood\n%s\n' "$tab" "$tab" "$tab" "$line" > "$TODO_FILE"
        for command in list "add x" "done 1" "pri A 1" stats; do refuses 3 $command; done
        check "the line's number" 1 "$(grep -c 3 "$dir/err")"
    done
}

test_the_default_file() {
    set_up
    here=$PWD
    cd "$dir/d"
    unset TODO_FILE
    check "add" 1 "$(sh "$here/todo.sh" add x)"
    check "file" "todo.tsv" "$(ls)"
    check "empty means the default" "1 M x" "$(TODO_FILE= sh "$here/todo.sh" list)"
}

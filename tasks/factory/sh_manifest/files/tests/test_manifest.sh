set_up() {
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    mkdir "$dir/f"
}

manifest() {
    status=0
    said=$(sh manifest.sh "$@" 2> "$dir/err") || status=$?
}

says() {
    expected=$1
    shift
    manifest "$@"
    check "manifest $1" "$expected" "$status:$said"
}

hash() { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }
create() { sh manifest.sh create "$dir/f" > "$dir/$1"; }

test_kinds() {
    set_up
    printf hello > "$dir/f/plain"
    printf hello > "$dir/f/program"
    chmod 755 "$dir/f/program"
    chmod 677 "$dir/f/plain"
    mkdir -p "$dir/f/sub/empty" "$dir/f/.hidden"
    : > "$dir/f/sub/none"
    ln -s plain "$dir/f/link"
    ln -s nowhere/at/all "$dir/f/dangling"
    ln -s sub "$dir/f/to-folder"
    says "0:d - - .hidden
l $(hash nowhere/at/all) - dangling
l $(hash plain) - link
f $(hash hello) - plain
f $(hash hello) x program
d - - sub/empty
f $(hash '') - sub/none
l $(hash sub) - to-folder" create "$dir/f"
}

test_nothing() {
    set_up
    says "0:" create "$dir/f"
    : > "$dir/m"
    says "0:" check "$dir/f" "$dir/m"
}

test_strange_names() {
    set_up
    for name in '-n' 'a  b' ' lead' "it's" '*' 'back\slash' '$HOME' '!'; do printf x > "$dir/f/$name"; done
    mkdir "$dir/f/-d"
    x="f $(hash x) -"
    says "0:$x  lead
$x !
$x \$HOME
$x *
d - - -d
$x -n
$x a  b
$x back\\slash
$x it's" create "$dir/f"
    create m
    says "0:" check "$dir/f" "$dir/m"
    rm "$dir/f/ lead" "$dir/f/back\\slash"
    printf y > "$dir/f/*"
    says "1:-  lead
M *
- back\\slash" check "$dir/f" "$dir/m"
}

test_sorted_by_bytes() {
    set_up
    for name in b B a.b a_b a-b aa; do printf x > "$dir/f/$name"; done
    mkdir "$dir/f/a"
    printf x > "$dir/f/a/z"
    check "order" "B a-b a.b a/z a_b aa b" "$(sh manifest.sh create "$dir/f" | cut -d ' ' -f 4 | tr '\n' ' ' | sed 's/ $//')"
}

test_folders_by_other_names() {
    set_up
    printf x > "$dir/f/a"
    ln -s f "$dir/link"
    says "0:f $(hash x) - a" create "$dir/link"
    mkdir "$dir/-r"
    here=$PWD
    check "a leading dash" 0: "$(cd "$dir" && sh "$here/manifest.sh" create -r; echo $?:)"
}

test_skipped() {
    set_up
    mkfifo "$dir/f/pipe"
    printf x > "$dir/f/a
b"
    printf x > "$dir/f/good"
    says "1:f $(hash x) - good" create "$dir/f"
    check "messages" 1 "$(grep -c pipe "$dir/err")"
    printf 'f %s - good\n' "$(hash x)" > "$dir/m"
    says "1:" check "$dir/f" "$dir/m"
}

test_changes() {
    set_up
    for name in same content mode kind gone both; do printf "$name" > "$dir/f/$name"; done
    ln -s a "$dir/f/link"
    mkdir "$dir/f/empty"
    create m
    printf more >> "$dir/f/content"
    chmod u+x "$dir/f/mode" "$dir/f/both"
    printf more >> "$dir/f/both"
    rm "$dir/f/kind" "$dir/f/gone"
    ln -s kind "$dir/f/kind"
    ln -sfn b "$dir/f/link"
    printf new > "$dir/f/new"
    printf x > "$dir/f/empty/file"
    says "1:M both
M content
- empty
+ empty/file
- gone
M kind
M link
X mode
+ new" check "$dir/f" "$dir/m"
    create m2
    says "1:M both
M content
+ empty
- empty/file
+ gone
M kind
M link
X mode
- new" compare "$dir/m2" "$dir/m"
}

test_a_folder_that_is_no_longer_empty() {
    set_up
    mkdir "$dir/f/d"
    create m
    printf x > "$dir/f/d/a"
    says "1:- d
+ d/a" check "$dir/f" "$dir/m"
}

test_moved() {
    set_up
    printf one > "$dir/f/z one"
    printf two > "$dir/f/two"
    printf three > "$dir/f/three"
    printf twin > "$dir/f/twin1"
    printf twin > "$dir/f/twin2"
    printf split > "$dir/f/split"
    printf stay > "$dir/f/stay"
    : > "$dir/f/empty"
    ln -s x "$dir/f/link"
    create m
    mv "$dir/f/z one" "$dir/f/a one"
    mkdir "$dir/f/d"
    mv "$dir/f/two" "$dir/f/d/2"
    mv "$dir/f/three" "$dir/f/3"
    chmod +x "$dir/f/3"
    mv "$dir/f/twin1" "$dir/f/t1"
    mv "$dir/f/twin2" "$dir/f/t2"
    cp "$dir/f/split" "$dir/f/s1"
    mv "$dir/f/split" "$dir/f/s2"
    cp "$dir/f/stay" "$dir/f/stay2"
    mv "$dir/f/empty" "$dir/f/none"
    mv "$dir/f/link" "$dir/f/link2"
    says "1:+ 3
- empty
- link
+ link2
+ none
+ s1
+ s2
- split
+ stay2
+ t1
+ t2
- three
- twin1
- twin2
R two -> d/2
R z one -> a one" check "$dir/f" "$dir/m"
}

test_moves_stand_where_they_were() {
    set_up
    for name in a b c d; do printf "$name" > "$dir/f/$name"; done
    create m
    mv "$dir/f/b" "$dir/f/zz"
    rm "$dir/f/a" "$dir/f/d"
    says "1:- a
R b -> zz
- d" check "$dir/f" "$dir/m"
}

refuses() {
    manifest "$@"
    check "status and output of $*" "2:" "$status:$said"
    [ -s "$dir/err" ] || check "a message for $*" something ""
}

test_bad_manifests() {
    set_up
    good="f $(hash x) - a"
    for line in "" "text" "f $(hash x) - " "f $(hash x) y b" "f 12 - b" "x $(hash x) - b" "l $(hash x) x b" "d $(hash x) - b" "$good" "d - - a" \
        "f $(hash x | tr a-f A-F) - b"; do
        printf '%s\n%s\n' "$good" "$line" > "$dir/m"
        refuses check "$dir/f" "$dir/m"
        check "the line's number" 1 "$(grep -c 2 "$dir/err")"
        printf '%s\n' "$good" > "$dir/good"
        refuses compare "$dir/good" "$dir/m"
        refuses compare "$dir/m" "$dir/good"
    done
}

test_usage() {
    set_up
    : > "$dir/m"
    refuses
    refuses nope "$dir/f"
    refuses create
    refuses create "$dir/f" more
    refuses create "$dir/nowhere"
    refuses create "$dir/m"
    refuses check "$dir/f"
    refuses check "$dir/f" "$dir/nowhere"
    refuses check "$dir/f" "$dir/f"
    refuses check "$dir/nowhere" "$dir/m"
    refuses compare "$dir/m"
    refuses compare "$dir/m" "$dir/nowhere"
}

#!/bin/sh
# ./setup as far as it goes without installing: its usage, its lists, that a wrong argument stops it before anything else.
set -eu
fail() { echo "$*"; exit 1; }
sh -n setup
for what in build demo test dev; do
    ./setup packages $what | grep -q libuv1-dev || fail "no list for $what"
done
./setup packages demo | grep -q python3-pytest || fail "the demo needs pytest"
for wrong in '' 'nonsense' 'packages nothing' 'demo FOO=1' 'test extra'; do
    # shellcheck disable=SC2086
    status=0; ./setup $wrong >/dev/null 2>&1 || status=$?
    [ "$status" = 2 ] || fail "./setup $wrong: exit $status instead of 2"
done
# Every package that docs/setup.md names for building is one that ./setup installs, and the other way round.
for package in $(./setup packages test); do
    grep -q "[\` ]$package[\` ]" docs/setup.md || fail "docs/setup.md does not name $package"
done

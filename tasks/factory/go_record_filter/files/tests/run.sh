#!/bin/sh
# Runs `go test` and counts. The last line is "# pass N fail M"; it is missing when nothing could be built or tested.
PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin
export PATH GOCACHE=${GOCACHE:-/tmp/gocache} GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0
command -v go > /dev/null || { echo "go: not found"; exit 127; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -vet=off -v -count=1 -shuffle="${CHECK_SEED:-off}" ./... > "$log" 2>&1
status=$?
cat "$log"
pass=$(grep -c '^--- PASS' "$log") fail=$(grep -c '^--- FAIL' "$log")
[ $((pass + fail)) -gt 0 ] || exit 2
grep -q 'build failed\|setup failed' "$log" && exit 2
if [ "$fail" -eq 0 ]; then # a program that left early tested less than there is
    tests=$(cat $(find . -name '*_test.go') | grep -c '^func Test[A-Z_]')
    [ "$pass" -ge "$tests" ] && [ $status -eq 0 ] || exit 2
fi
echo "# pass $pass fail $fail"
[ "$fail" -eq 0 ]

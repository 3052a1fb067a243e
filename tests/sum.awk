# Sums CTest logs by the closing lines of what ran in them: ours (`N passed, N failed, N skipped`), cmocka's, or, for a
# test that prints neither, the test itself. Names what failed and what was skipped. Ends with a failure if any test failed.
FNR == 1 { build = FILENAME; sub(/^.*\//, "", build); sub(/\.log$/, "", build) }
/^[0-9]+\/[0-9]+ Test: / {
    name = build ": " $3
    p = f = s = 0
    counted = 0
    note = ""
    next
}
/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { p = $1 + 0; f = $3 + 0; s = $5 + 0; counted = 1; next }
/^\[  PASSED  \] [0-9]+ test/ { p = $4 + 0; counted = 1; next }
/^\[  FAILED  \] [0-9]+ test/ { f = $4 + 0; counted = 1; next }
/^\[  SKIPPED \] [0-9]+ test/ { s = $4 + 0; counted = 1; next }
/^\[  SKIPPED \] / { skips[++nskips] = name ": " $4; next }
/^ok .*# SKIP/ {
    line = $0
    sub(/^ok [0-9]+ - /, "", line)
    sub(/ *# SKIP */, ": ", line)
    skips[++nskips] = name ": " line
    next
}
/^SKIP / { note = substr($0, 6); next }
/^Test Passed\./ { end("passed") }
/^Test Skipped\./ || /^Test Not Run/ { end("skipped") }
/^Test (Failed|Timeout)/ || /^Test Exception/ { end("failed") }

function end(status) {
    if (name == "") return
    if (!counted) { p = status == "passed"; f = status == "failed"; s = status == "skipped" }
    if (!counted && status == "skipped") skips[++nskips] = name ": " note
    if (status == "failed" && f == 0) f = 1
    if (f > 0) failures[++nfailures] = name
    passed += p; failed += f; skipped += s
    name = ""
}
END {
    for (i = 1; i <= nskips; i++) print "skipped: " skips[i]
    for (i = 1; i <= nfailures; i++) print "failed: " failures[i]
    print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
    exit failed > 0 || passed == 0
}

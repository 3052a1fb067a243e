#!/bin/sh
# Requests and bytes by status. The request may hold spaces and escaped quotes, so the fields are counted from its end.
awk '
    /^[^ ]+ [^ ]+ [^ ]+ \[[^]]*\] "/ {
        sub(/^[^ ]+ [^ ]+ [^ ]+ \[[^]]*\] "/, "")
        while (match($0, /^[^"\\]*\\./)) $0 = substr($0, RLENGTH + 1)
        if (!match($0, /^[^"]*" [1-5][0-9][0-9] ([0-9]+|-)( |$)/)) next
        sub(/^[^"]*" /, "")
        requests[$1]++
        bytes[$1] += $2 == "-" ? 0 : $2
    }
    END { for (status in requests) printf "%s %d %.0f\n", status, requests[status], bytes[status] }
' | sort

# Names of one prefix from stamps such as 20240131-1200.
names() {
    for stamp in $1; do echo "db-$stamp.tar.gz"; done
}

# The stamps that are kept with these options.
kept() {
    stamps=$1
    shift
    names "$stamps" | sh prune.sh -k "$@" | sed 's/^db-//; s/\.tar\.gz$//' | tr '\n' ' '
}

test_newest_of_a_day() {
    check "kept" "20240501-2359 20240502-1200 " "$(kept '20240501-0000 20240501-2359 20240502-1200 20240502-1159' -w0 -m0)"
    check "what goes" "db-20240501-0000.tar.gz
db-20240502-1159.tar.gz" "$(names '20240502-1159 20240501-0000 20240501-2359 20240502-1200' | sh prune.sh -w 0 -m 0)"
}

test_last_days() {
    stamps='20240501-0100 20240503-0100 20240507-0100 20240509-0100'
    check "three days that have one" "20240503-0100 20240507-0100 20240509-0100 " "$(kept "$stamps" -d 3 -w 0 -m 0)"
    check "one" "20240509-0100 " "$(kept "$stamps" -d 1 -w 0 -m 0)"
    check "none but the newest" "20240509-0100 " "$(kept "$stamps" -d 0 -w 0 -m 0)"
    check "more than there are" "20240501-0100 20240503-0100 20240507-0100 20240509-0100 " "$(kept "$stamps" -d 9999 -w 0 -m 0)"
}

test_weeks_begin_on_monday() {
    # 2024-05-05 is a Sunday.
    stamps='20240504-0100 20240505-0100 20240506-0100 20240512-0100 20240513-0100'
    check "weeks" "20240505-0100 20240512-0100 20240513-0100 " "$(kept "$stamps" -d 0 -w 4 -m 0)"
    check "two weeks" "20240512-0100 20240513-0100 " "$(kept "$stamps" -d 0 -w 2 -m 0)"
}

test_weeks_over_the_end_of_a_year() {
    # 2024-12-30 is a Monday, 2023-01-01 a Sunday, 2000-02-28 a Monday, 2100-03-01 a Monday.
    check "one week" "20250105-0100 " "$(kept '20241230-0100 20241231-0100 20250101-0100 20250105-0100' -d0 -m0)"
    check "two weeks" "20230101-0100 20230102-0100 " "$(kept '20221231-0100 20230101-0100 20230102-0100' -d0 -m0)"
    check "a leap day" "20000227-0100 20000305-0100 " "$(kept '20000227-0100 20000228-0100 20000229-0100 20000301-0100 20000305-0100' -d0 -m0)"
    check "no leap day" "21000228-0100 21000307-0100 " "$(kept '21000222-0100 21000228-0100 21000301-0100 21000307-0100' -d0 -m0)"
}

test_months() {
    stamps='20230930-0100 20231001-0100 20231031-0100 20240101-0100 20240131-0100 20240201-0100'
    check "months" "20231031-0100 20240131-0100 20240201-0100 " "$(kept "$stamps" -d 0 -w 0 -m 3)"
    check "the same month of another year" "20230201-0100 20240201-0100 " "$(kept '20230201-0100 20240201-0100' -d0 -w0)"
}

test_rules_together() {
    stamps=
    for month in 01 02 03 04 05 06 07 08; do
        for day in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28; do
            stamps="$stamps 2024$month$day-0100 2024$month$day-1300"
        done
    done
    # Days back to 22 August, Sundays and the newest, ends of months.
    check "by default" "20240328-1300 20240428-1300 20240528-1300 20240628-1300 20240728-1300 20240811-1300 20240818-1300 20240822-1300 20240823-1300 20240824-1300 20240825-1300 20240826-1300 20240827-1300 20240828-1300 " "$(kept "$stamps")"
    check "how many go" $((8 * 28 * 2 - 14)) "$(names "$stamps" | sh prune.sh | wc -l | tr -d ' ')"
}

test_prefixes_are_apart() {
    input='a-20240101-0100.tar.gz
a-b-20240101-0200.tar.gz
a-20240102-0100.tar.gz
a b*-20240101-0100.tar.gz
--20240101-0100.tar.gz
a-20240101-0100.tar.gz-20240101-0100.tar.gz'
    check "only the old one of a" "a-20240101-0100.tar.gz" "$(echo "$input" | sh prune.sh -d1 -w0 -m0)"
    check "kept, sorted by bytes" "--20240101-0100.tar.gz
a b*-20240101-0100.tar.gz
a-20240101-0100.tar.gz-20240101-0100.tar.gz
a-20240102-0100.tar.gz
a-b-20240101-0200.tar.gz" "$(echo "$input" | sh prune.sh -d1 -w0 -m0 -k)"
}

test_names_that_come_twice() {
    check "once" "a-20240101-0100.tar.gz" "$(printf 'a-20240101-0100.tar.gz\na-20240102-0100.tar.gz\na-20240101-0100.tar.gz\n' | sh prune.sh -d1 -w0 -m0)"
}

other() {
    printf '%s\n' "$@" | sh prune.sh -d0 -w0 -m0 2>&1
}

test_other_lines() {
    check "not names" "prune: 9 other lines" "$(other -20240101-0100.tar.gz a-20240101-0100.tar a-2024011-0100.tar.gz a20240101-0100.tar.gz \
        '' a-20240101-0100.tar.gz. a-20240101-0100xtar.gz a-20240101-010.tar.gz a_20240101_0100.tar.gz)"
    check "not dates" "prune: 12 other lines" "$(other a-20230229-0100.tar.gz a-21000229-0100.tar.gz a-20240431-0100.tar.gz \
        a-20240631-0100.tar.gz a-20240931-0100.tar.gz a-20241131-0100.tar.gz a-20240001-0100.tar.gz \
        a-20241301-0100.tar.gz a-20240100-0100.tar.gz a-20240132-0100.tar.gz a-20240101-2400.tar.gz a-20240101-0060.tar.gz)"
    check "the last days of months" "" "$(other a-20240229-0100.tar.gz b-20000229-2359.tar.gz c-20240731-0000.tar.gz d-20241231-0000.tar.gz)"
    check "no input" "" "$(sh prune.sh < /dev/null 2>&1)"
}

status_of() {
    status=0
    out=$(echo a-20240101-0100.tar.gz | sh prune.sh -k "$@" 2> /dev/null) || status=$?
    echo "$status:$out"
}

test_bad_options() {
    check "good" "0:a-20240101-0100.tar.gz" "$(status_of -d 3 -w4 -m 0009)"
    for word in -d -dx -d-1 -d1.5 -w10000 -x; do check "$word" "2:" "$(status_of $word)"; done
    check "empty" "2:" "$(status_of -m '')"
    check "a word too many" "2:" "$(status_of -d 3 more)"
    said=$(sh prune.sh -d x 2>&1 < /dev/null || :)
    [ -n "$said" ] || check "a message" something ""
}

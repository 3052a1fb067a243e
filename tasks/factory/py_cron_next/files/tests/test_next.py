from datetime import datetime as T

import pytest

from cron import parse


@pytest.mark.parametrize("text, after, expected", [
    ("* * * * *", T(2024, 1, 1, 0, 0), T(2024, 1, 1, 0, 1)),
    ("* * * * *", T(2024, 1, 1, 0, 0, 59, 999), T(2024, 1, 1, 0, 1)),
    ("30 * * * *", T(2024, 1, 1, 5, 30), T(2024, 1, 1, 6, 30)),
    ("30 * * * *", T(2024, 1, 1, 5, 29, 30), T(2024, 1, 1, 5, 30)),
    ("0 9-17/4 * * *", T(2024, 1, 1, 17, 0), T(2024, 1, 2, 9, 0)),
    ("59 23 31 12 *", T(2024, 12, 31, 23, 59), T(2025, 12, 31, 23, 59)),
    ("0 0 1 1 *", T(2023, 5, 6), T(2024, 1, 1)),
    ("0 0 31 * *", T(2024, 3, 31), T(2024, 5, 31)),
    ("0 0 29 2 *", T(2024, 2, 29), T(2028, 2, 29)),
    ("0 0 29 2 *", T(2096, 2, 29), T(2104, 2, 29)),
    ("0 12 * * mon-fri", T(2024, 6, 14, 12, 0), T(2024, 6, 17, 12, 0)),
    ("0 0 * * sun", T(2024, 6, 10), T(2024, 6, 16)),
    ("0 0 13 * 5", T(2024, 6, 10), T(2024, 6, 13)),
    ("0 0 13 * 5", T(2024, 6, 13), T(2024, 6, 14)),
    ("0 0 13 * *", T(2024, 6, 13), T(2024, 7, 13)),
    ("0 0 1 * */6", T(2024, 6, 2), T(2024, 6, 8)),
    ("0 0 */10 6 1", T(2024, 6, 4), T(2024, 6, 10)),
    ("15,45 3 * feb *", T(2024, 2, 29, 3, 15), T(2024, 2, 29, 3, 45)),
    ("15,45 3 * feb *", T(2024, 2, 29, 3, 45), T(2025, 2, 1, 3, 15)),
])
def test_next(text, after, expected):
    assert parse(text).next_after(after) == expected


def test_never():
    assert parse("0 0 31 2 *").next_after(T(2024, 1, 1)) is None
    assert parse("0 0 30 2 *").next_after(T(2024, 1, 1)) is None


def test_a_year_of_firings():
    schedule, moment, seen = parse("0 6 1,15 * mon"), T(2023, 12, 31, 23, 59), []
    while True:
        moment = schedule.next_after(moment)
        if moment.year > 2024:
            break
        seen.append(moment)
    assert len(seen) == 53 + 24 - 6     # Mondays, firsts and fifteenths, without those that are both
    assert all(m.hour == 6 and m.minute == 0 and (m.day in (1, 15) or m.weekday() == 0) for m in seen)

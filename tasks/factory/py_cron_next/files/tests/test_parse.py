import pytest

from cron import parse


def test_plain_fields():
    s = parse("5 0 1 12 3")
    assert (s.minutes, s.hours, s.days, s.months, s.weekdays) == ({5}, {0}, {1}, {12}, {3})
    assert (s.any_day, s.any_weekday) == (False, False)


def test_stars():
    s = parse(" *  * * *   * ")
    assert s.minutes == set(range(60)) and s.hours == set(range(24))
    assert s.days == set(range(1, 32)) and s.months == set(range(1, 13)) and s.weekdays == set(range(7))
    assert s.any_day and s.any_weekday


def test_lists_ranges_and_steps():
    s = parse("*/15,59 8-17/3 1,15-18 1-12/5 */3")
    assert s.minutes == {0, 15, 30, 45, 59}
    assert s.hours == {8, 11, 14, 17}
    assert s.days == {1, 15, 16, 17, 18}
    assert s.months == {1, 6, 11}
    assert s.weekdays == {0, 3, 6}
    assert not s.any_weekday


def test_names():
    s = parse("0 0 * Jan,MAR-may sun,mon-Fri")
    assert s.months == {1, 3, 4, 5}
    assert s.weekdays == {0, 1, 2, 3, 4, 5}


def test_seven_is_sunday():
    assert parse("0 0 * * 7").weekdays == {0}
    assert parse("0 0 * * 5-7").weekdays == {5, 6, 0}
    assert parse("0 0 * * 0-7").weekdays == set(range(7))


@pytest.mark.parametrize("name, same", [("@hourly", "0 * * * *"), ("@weekly", "0 0 * * 0"), ("@yearly", "0 0 1 1 *")])
def test_shorthands(name, same):
    assert vars(parse(name)) == vars(parse(same))


@pytest.mark.parametrize("text, field", [
    ("60 * * * *", "minute"), ("-1 * * * *", "minute"), ("*/0 * * * *", "minute"), ("5/2 * * * *", "minute"), ("1, * * * *", "minute"),
    ("* 24 * * *", "hour"), ("* 9-5 * * *", "hour"), ("* 1-2-3 * * *", "hour"), ("* x * * *", "hour"),
    ("* * 0 * *", "day of month"), ("* * 32 * *", "day of month"), ("* * mon * *", "day of month"),
    ("* * * 13 *", "month"), ("* * * foo *", "month"), ("* * * */ *", "month"),
    ("* * * * 8", "day of week"), ("* * * * fri-mon", "day of week"), ("* * * * \u0663", "day of week"),
])
def test_errors_name_the_field(text, field):
    with pytest.raises(ValueError, match=field):
        parse(text)


@pytest.mark.parametrize("text", ["", "* * * *", "* * * * * *", "@never"])
def test_other_errors(text):
    with pytest.raises(ValueError):
        parse(text)

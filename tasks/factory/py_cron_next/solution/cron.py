"""Cron expressions; see RULES.md."""
import calendar
import datetime

FIELDS = [("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7)]
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
SHORTHANDS = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
}


def _number(text, name, low, high):
    names = {"month": MONTHS, "day of week": DAYS}.get(name, [])
    if text.lower() in names:
        return names.index(text.lower()) + low
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"{name}: bad value {text!r}")
    return int(text)


def _part(text, name, low, high):
    body, slash, step = text.partition("/")
    width = 1
    if slash:
        if not step.isascii() or not step.isdigit() or int(step) == 0:
            raise ValueError(f"{name}: bad step {step!r}")
        width = int(step)
    if body == "*":
        last = 6 if name == "day of week" else high
        return range(low, last + 1, width)
    first, dash, last = body.partition("-")
    if dash:
        a, b = _number(first, name, low, high), _number(last, name, low, high)
        if a > b:
            raise ValueError(f"{name}: {body} runs backwards")
        return range(a, b + 1, width)
    if slash:
        raise ValueError(f"{name}: a step needs a range")
    return [_number(body, name, low, high)]


def _field(text, name, low, high):
    values = set()
    for part in text.split(","):
        values.update(_part(part, name, low, high))
    if name == "day of week" and 7 in values:
        values.remove(7)
        values.add(0)
    return frozenset(values)


class Schedule:
    """A parsed expression. `minutes`, `hours`, `days`, `months` and `weekdays` are sets of numbers; weekdays are 0 (Sunday) to 6."""

    def __init__(self, minutes, hours, days, months, weekdays, any_day, any_weekday):
        self.minutes = minutes
        self.hours = hours
        self.days = days
        self.months = months
        self.weekdays = weekdays
        self.any_day = any_day              # the text of that field was "*"
        self.any_weekday = any_weekday

    def _day_matches(self, year, month, day):
        by_day = day in self.days
        by_weekday = (calendar.weekday(year, month, day) + 1) % 7 in self.weekdays
        if self.any_weekday:
            return by_day
        if self.any_day:
            return by_weekday
        return by_day or by_weekday

    def next_after(self, moment):
        """The first time strictly after `moment` at which this fires, with seconds and microseconds 0.

        None when there is none within the next 30 years, as for the 31st of February.
        """
        start = moment.replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
        for year in range(start.year, start.year + 31):
            for month in sorted(self.months):
                if (year, month) < (start.year, start.month):
                    continue
                for day in range(1, calendar.monthrange(year, month)[1] + 1):
                    if (year, month, day) < (start.year, start.month, start.day) or not self._day_matches(year, month, day):
                        continue
                    found = self._time_on(datetime.datetime(year, month, day), start)
                    if found:
                        return found
        return None

    def _time_on(self, midnight, start):
        for hour in sorted(self.hours):
            for minute in sorted(self.minutes):
                moment = midnight.replace(hour=hour, minute=minute)
                if moment >= start:
                    return moment
        return None


def parse(text):
    """Reads an expression. Raises ValueError as RULES.md says."""
    text = text.strip()
    if text.startswith("@"):
        if text not in SHORTHANDS:
            raise ValueError(f"no such shorthand: {text}")
        text = SHORTHANDS[text]
    words = text.split()
    if len(words) != 5:
        raise ValueError(f"5 fields are wanted, there are {len(words)}")
    sets = [_field(word, *field) for word, field in zip(words, FIELDS)]
    return Schedule(*sets, words[2] == "*", words[4] == "*")

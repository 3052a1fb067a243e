"""Cron expressions; see RULES.md."""
import calendar
import datetime

FIELDS = [("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7)]
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
SHORTHANDS = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
}


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

    def next_after(self, moment):
        """The first time strictly after `moment` at which this fires, with seconds and microseconds 0.

        None when there is none within the next 30 years, as for the 31st of February.
        """
        return None


def parse(text):
    """Reads an expression. Raises ValueError as RULES.md says."""
    return Schedule(set(), set(), set(), set(), set(), True, True)

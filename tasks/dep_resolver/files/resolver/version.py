"""Versions: MAJOR.MINOR.PATCH with an optional -PRERELEASE."""

import functools


@functools.total_ordering
class Version:
    """A version as semantic versioning orders it.

    Three numbers without leading zeros. The prerelease is dot-separated identifiers of [0-9A-Za-z-]; numeric ones
    have no leading zeros, compare as numbers and come before words; with equal beginnings the shorter list comes
    first; a version with a prerelease comes before the one without. Anything else raises ValueError.
    """

    def __init__(self, text):
        self.text = text
        numbers, _, prerelease = text.partition("-")
        self.numbers = numbers.split(".")
        self.prerelease = prerelease

    def _key(self):
        return (self.numbers, self.prerelease)

    def __eq__(self, other):
        return self._key() == other._key()

    def __lt__(self, other):
        return self._key() < other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Version({self.text!r})"

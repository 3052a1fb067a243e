"""Versions: MAJOR.MINOR.PATCH with an optional -PRERELEASE."""

import functools
import re

_NUMBER = r"(0|[1-9][0-9]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?")


def _identifier(text):
    if not text.isdigit():
        return (1, 0, text)
    if text != str(int(text)):
        raise ValueError(f"leading zero in {text!r}")
    return (0, int(text), "")


@functools.total_ordering
class Version:
    """A version as semantic versioning orders it.

    Three numbers without leading zeros. The prerelease is dot-separated identifiers of [0-9A-Za-z-]; numeric ones
    have no leading zeros, compare as numbers and come before words; with equal beginnings the shorter list comes
    first; a version with a prerelease comes before the one without. Anything else raises ValueError.
    """

    def __init__(self, text):
        match = _VERSION.fullmatch(text)
        if match is None:
            raise ValueError(f"malformed version {text!r}")
        self.text = text
        self.numbers = tuple(int(number) for number in match.groups()[:3])
        self.prerelease = tuple(_identifier(part) for part in match[4].split(".")) if match[4] else ()

    def _key(self):
        return (self.numbers, not self.prerelease, self.prerelease)

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

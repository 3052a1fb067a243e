"""Constraints on versions."""

import operator
import re

from .version import Version

_TERM = re.compile(r"(\^|~|=|!=|>=|<=|>|<|)([0-9].*)")
_COMPARE = {
    "": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _ceiling(sign, numbers):
    """The first three numbers that "^" or "~" no longer allows."""
    major, minor, patch = numbers
    if sign == "~":
        return (major, minor + 1, 0)
    if major:
        return (major + 1, 0, 0)
    return (0, minor + 1, 0) if minor else (0, 0, patch + 1)


class _Term:
    def __init__(self, text):
        match = _TERM.fullmatch(text)
        if match is None:
            raise ValueError(f"malformed term {text!r}")
        self.sign = match[1]
        self.version = Version(match[2])

    def allows(self, version):
        if self.sign in _COMPARE:
            return _COMPARE[self.sign](version, self.version)
        return version >= self.version and version.numbers < _ceiling(self.sign, self.version.numbers)

    def admits_prerelease(self, version):
        return bool(self.version.prerelease) and self.version.numbers == version.numbers


class Constraint:
    """What a dependency asks for: alternatives joined by "||", each a list of terms joined by spaces that must all hold.

    Terms: "*" (anything), "1.2.3" or "=1.2.3", "!=1.2.3", ">1.2.3", ">=1.2.3", "<1.2.3", "<=1.2.3",
    "^1.2.3" (at least that, below the next change of the leftmost non-zero number: <2.0.0; ^0.2.3: <0.3.0; ^0.0.3: <0.0.4),
    "~1.2.3" (at least that, below 1.3.0).

    A prerelease is allowed only if some term of the same alternative names a prerelease of the same three numbers.
    Malformed text raises ValueError.
    """

    def __init__(self, text):
        self.text = text
        self.alternatives = []
        for alternative in text.split("||"):
            words = alternative.split()
            if not words:
                raise ValueError(f"empty alternative in {text!r}")
            self.alternatives.append([_Term(word) for word in words if word != "*"])

    def allows(self, version):
        """Whether version satisfies the constraint."""
        return any(
            all(term.allows(version) for term in terms)
            and (not version.prerelease or any(term.admits_prerelease(version) for term in terms))
            for terms in self.alternatives
        )

    def __str__(self):
        return self.text

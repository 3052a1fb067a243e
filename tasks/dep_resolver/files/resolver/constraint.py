"""Constraints on versions."""

from .version import Version


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
        self.terms = text.split()

    def allows(self, version):
        """Whether version satisfies the constraint."""
        for term in self.terms:
            if term == "*":
                continue
            if term.startswith(">=") and not version >= Version(term[2:]):
                return False
            if term.startswith("^") and not version >= Version(term[1:]):
                return False
        return True

    def __str__(self):
        return self.text

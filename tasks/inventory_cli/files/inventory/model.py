"""The words of the program."""

from datetime import date
from decimal import Decimal
from typing import NamedTuple, Optional


class Movement(NamedTuple):
    date: date
    sku: str
    kind: str  # "in", "out" or "count"
    quantity: int
    price: Optional[Decimal]


class RecordError(NamedTuple):
    """One fault of a file; str() is what the user sees."""

    file: str
    line: int
    message: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.message}"


class UsageError(Exception):
    """Bad arguments, an unreadable file or a bad header: exit code 2."""


class LedgerError(Exception):
    """More was taken than there is: exit code 1."""

"""CSV to movements."""

from datetime import date
from decimal import Decimal

from .model import Movement

COLUMNS = ("date", "sku", "kind", "quantity", "price")


def read(file):
    """(movements, errors) of one file; raises UsageError if it can't be read or its header is bad."""
    movements, errors = [], []
    with open(file) as lines:
        next(lines)
        for line in lines:
            day, sku, kind, quantity, price = line.strip().split(",")
            movements.append(
                Movement(date.fromisoformat(day), sku, kind, int(quantity), Decimal(price) if price else None)
            )
    return movements, errors


def read_all(files):
    """(movements, errors) of all files, the movements in the order of the ledger."""
    movements, errors = [], []
    for file in files:
        more, wrong = read(file)
        movements += more
        errors += wrong
    return movements, errors

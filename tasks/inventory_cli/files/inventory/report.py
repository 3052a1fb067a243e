"""What the commands print: functions from movements to lines of text."""

from .ledger import Ledger


def stock(movements):
    """Lines of the `stock` command."""
    ledger = Ledger()
    for movement in movements:
        ledger.apply(movement)
    return [f"{sku},{ledger.quantity(sku)},{ledger.value(sku)}" for sku in ledger.lots]


def report(movements, month=None):
    """Lines of the `report` command; month is "YYYY-MM" or None."""
    raise NotImplementedError

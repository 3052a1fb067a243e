"""Lots, first in first out."""


class Ledger:
    """Applies movements in order. `lots[sku]` is a list of [quantity, price], oldest first."""

    def __init__(self):
        self.lots = {}

    def apply(self, movement):
        """Books one movement; returns (shrinkage in units, cost of sales) of it. Raises LedgerError."""
        lots = self.lots.setdefault(movement.sku, [])
        if movement.kind == "in":
            lots.append([movement.quantity, movement.price])
        elif movement.kind == "out":
            lots[-1][0] -= movement.quantity
        return 0, 0

    def quantity(self, sku):
        """Units in stock."""
        return sum(quantity for quantity, _ in self.lots.get(sku, []))

    def value(self, sku):
        """What the stock cost."""
        return sum(quantity * price for quantity, price in self.lots.get(sku, []))

"""Lots, first in first out."""

from decimal import Decimal

from .model import LedgerError

ZERO = Decimal(0)


class Ledger:
    """Applies movements in order. `lots[sku]` is a list of [quantity, price], oldest first."""

    def __init__(self):
        self.lots = {}
        self.newest_price = {}

    def apply(self, movement):
        """Books one movement; returns (shrinkage in units, cost of sales) of it. Raises LedgerError."""
        sku, quantity = movement.sku, movement.quantity
        lots = self.lots.setdefault(sku, [])
        if movement.kind == "in":
            lots.append([quantity, movement.price])
            self.newest_price[sku] = movement.price
            return 0, ZERO
        there = self.quantity(sku)
        if movement.kind == "out":
            if quantity > there:
                raise LedgerError(f"{sku}: only {there} in stock on {movement.date}")
            return 0, self._take(lots, quantity)
        missing = there - quantity
        if missing > 0:
            self._take(lots, missing)
        elif missing < 0:
            lots.append([-missing, self.newest_price.get(sku, ZERO)])
        return missing, ZERO

    @staticmethod
    def _take(lots, quantity):
        cost = ZERO
        while quantity:
            taken = min(quantity, lots[0][0])
            cost += taken * lots[0][1]
            quantity -= taken
            lots[0][0] -= taken
            if not lots[0][0]:
                lots.pop(0)
        return cost

    def quantity(self, sku):
        """Units in stock."""
        return sum(quantity for quantity, _ in self.lots.get(sku, []))

    def value(self, sku):
        """What the stock cost."""
        return sum((quantity * price for quantity, price in self.lots.get(sku, [])), ZERO)

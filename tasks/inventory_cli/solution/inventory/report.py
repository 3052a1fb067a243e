"""What the commands print: functions from movements to lines of text."""

import csv
import io
from decimal import Decimal

from .ledger import Ledger

HEADER = ("sku", "in", "out", "shrinkage", "cost_of_sales", "stock", "value")


def _lines(rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([f"{cell:.2f}" if isinstance(cell, Decimal) else cell for cell in row])
    return out.getvalue().splitlines()


def stock(movements):
    """Lines of the `stock` command."""
    ledger = Ledger()
    for movement in movements:
        ledger.apply(movement)
    return _lines((sku, ledger.quantity(sku), ledger.value(sku)) for sku in sorted(ledger.lots) if ledger.quantity(sku))


def report(movements, month=None):
    """Lines of the `report` command; month is "YYYY-MM" or None."""
    ledger, moved = Ledger(), {}
    for movement in movements:
        in_month = movement.date.isoformat()[:7]
        if month and in_month > month:
            break
        shrinkage, cost = ledger.apply(movement)
        if month and in_month != month:
            continue
        sums = moved.setdefault(movement.sku, [0, 0, 0, Decimal(0)])
        if movement.kind != "count":
            sums[0 if movement.kind == "in" else 1] += movement.quantity
        sums[2] += shrinkage
        sums[3] += cost
    rows = [(sku, *moved[sku], ledger.quantity(sku), ledger.value(sku)) for sku in sorted(moved)]
    total = ["TOTAL", 0, 0, 0, Decimal(0), 0, Decimal(0)]
    for row in rows:
        for place in range(1, len(total)):
            total[place] += row[place]
    return _lines([HEADER, *rows, total])

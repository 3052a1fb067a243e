"""CSV to movements."""

import csv
import re
from datetime import date
from decimal import Decimal

from .model import Movement, RecordError, UsageError

COLUMNS = ("date", "sku", "kind", "quantity", "price")
KINDS = ("in", "out", "count")


def _date(text):
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        raise ValueError(f"bad date {text!r}")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"no such date {text!r}") from None


def _quantity(text, kind):
    least = 0 if kind == "count" else 1
    if not re.fullmatch(r"\d+", text, re.ASCII) or int(text) < least:
        raise ValueError(f"quantity must be a whole number of at least {least}, not {text!r}")
    return int(text)


def _price(text, kind):
    if kind != "in":
        if text:
            raise ValueError(f"a price makes no sense for {kind!r}")
        return None
    if not re.fullmatch(r"\d+(\.\d{1,2})?", text, re.ASCII):
        raise ValueError(f"bad price {text!r}")
    return Decimal(text)


def _movement(row, places):
    if len(row) <= max(places.values()):
        raise ValueError("too few fields")
    day, sku, kind, quantity, price = (row[places[name]].strip() for name in COLUMNS)
    if not sku:
        raise ValueError("sku is empty")
    if kind not in KINDS:
        raise ValueError(f"kind must be in, out or count, not {kind!r}")
    return Movement(_date(day), sku.upper(), kind, _quantity(quantity, kind), _price(price, kind))


def _places(file, header):
    places = {name.strip(): place for place, name in reversed(list(enumerate(header)))}
    for name in COLUMNS:
        if name not in places:
            raise UsageError(f"{file}:1: missing column {name}")
    return {name: places[name] for name in COLUMNS}


def read(file):
    """(movements, errors) of one file; raises UsageError if it can't be read or its header is bad."""
    movements, errors = [], []
    try:
        with open(file, encoding="utf-8-sig", newline="") as source:
            rows = csv.reader(source)
            places = _places(file, next(rows, []))
            start = rows.line_num + 1
            for row in rows:
                if row:
                    try:
                        movements.append(_movement(row, places))
                    except ValueError as error:
                        errors.append(RecordError(file, start, str(error)))
                start = rows.line_num + 1
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file}: {error}") from error
    return movements, errors


def read_all(files):
    """(movements, errors) of all files, the movements in the order of the ledger."""
    movements, errors = [], []
    for file in files:
        more, wrong = read(file)
        movements += more
        errors += wrong
    movements.sort(key=lambda movement: movement.date)  # stable: on one date the order read stays
    return movements, errors

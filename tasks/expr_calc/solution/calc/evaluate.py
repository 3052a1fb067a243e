"""Walks the tree."""

import math
import operator

from .errors import CalcError
from .parser import parse

_BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "^": operator.pow,
}
_FUNCTIONS = {
    "min": (lambda *args: min(args), 1, None),
    "max": (lambda *args: max(args), 1, None),
    "abs": (abs, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "round": (round, 1, 2),
}


def _binary(token, left, right):
    try:
        value = _BINARY[token.text](left, right)
    except (ArithmeticError, ValueError) as error:
        raise CalcError(str(error), token.position) from error
    if isinstance(value, complex):
        raise CalcError("a power without a real value", token.position)
    return value


def _call(token, args):
    if token.text not in _FUNCTIONS:
        raise CalcError(f"unknown function {token.text}", token.position)
    function, least, most = _FUNCTIONS[token.text]
    if len(args) < least or (most is not None and len(args) > most):
        raise CalcError(f"wrong number of arguments for {token.text}", token.position)
    try:
        return function(*args)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise CalcError(str(error), token.position) from error


class Calculator:
    """Runs programs; variables stay from one run to the next."""

    def __init__(self, names=None):
        self.names = dict(names or {})

    def run(self, text):
        """The value of the program's last statement. A program that fails changes no variable."""
        names, value = dict(self.names), None
        for statement in parse(text):
            if statement[0] == "assign":
                _, token, node = statement
                value = names[token.text] = self._value(node, names)
            else:
                value = self._value(statement, names)
        self.names = names
        return value

    def _value(self, node, names):
        # A chain such as 1+1+1... leans to the left as far as it is long, so the left side is a loop.
        pending = []
        while node[0] == "binary":
            pending.append((node[1], node[3]))
            node = node[2]
        value = self._leaf(node, names)
        for token, right in reversed(pending):
            value = _binary(token, value, self._value(right, names))
        return value

    def _leaf(self, node, names):
        kind = node[0]
        if kind == "number":
            return node[1]
        token = node[1]
        if kind == "name":
            if token.text not in names:
                raise CalcError(f"unknown name {token.text}", token.position)
            return names[token.text]
        if kind == "call":
            return _call(token, [self._value(arg, names) for arg in node[2]])
        return -self._value(node[2], names)

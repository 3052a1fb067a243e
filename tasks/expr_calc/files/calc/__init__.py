"""Arithmetic expressions: tokens, a parser and an evaluator."""

from .errors import CalcError
from .evaluate import Calculator


def calculate(text, **names):
    """The value of a program, with names as its variables."""
    return Calculator(names).run(text)


__all__ = ["CalcError", "Calculator", "calculate"]

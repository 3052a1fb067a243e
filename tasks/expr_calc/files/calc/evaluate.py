"""Walks the tree."""


class Calculator:
    """Runs programs; variables stay from one run to the next."""

    def __init__(self, names=None):
        self.names = dict(names or {})

    def run(self, text):
        """The value of the program's last statement. A program that fails changes no variable."""
        raise NotImplementedError

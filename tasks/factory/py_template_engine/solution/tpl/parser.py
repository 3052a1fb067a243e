"""From tokens to a tree.

Nodes are tuples: ("text", text), ("value", path, filters, line), ("if", path, negated, then, otherwise, line) and
("for", name, path, body, otherwise, line). `path` is a list of names, `then`, `body` and `otherwise` are lists of nodes.
"""
import re

from tpl.lexer import TemplateError, tokens

FILTERS = {"upper", "lower", "trim", "length", "join", "raw"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*\Z")


def _path(text, line):
    if not PATH.match(text):
        raise TemplateError(f"not a path: {text!r}", line)
    return text.split(".")


def _value(text, line):
    path, *filters = [part.strip() for part in text.split("|")]
    for name in filters:
        if name not in FILTERS:
            raise TemplateError(f"no such filter: {name!r}", line)
    return ("value", _path(path, line), filters, line)


def _open(words, text, line):
    if words[0] == "if" and len(words) == 2:
        return ["if", _path(words[1], line), False, [], [], line]
    if words[0] == "if" and len(words) == 3 and words[1] == "not":
        return ["if", _path(words[2], line), True, [], [], line]
    if words[0] == "for" and len(words) == 4 and words[2] == "in" and NAME.match(words[1]):
        return ["for", words[1], _path(words[3], line), [], [], line]
    raise TemplateError(f"no such tag: {text!r}", line)


def parse(source):
    """The tree of a template: a list of nodes. Raises TemplateError."""
    top = []
    stack = []          # [node, whether its else was seen]
    out = top
    for kind, text, line in tokens(source):
        if kind == "text":
            out.append(("text", text))
        elif kind == "value":
            out.append(_value(text, line))
        elif text == "else":
            if not stack or stack[-1][1]:
                raise TemplateError("else without a block", line)
            stack[-1][1] = True
            out = stack[-1][0][4]
        elif text == "end":
            if not stack:
                raise TemplateError("end without a block", line)
            node = stack.pop()[0]
            out = top
            if stack:
                out = stack[-1][0][4 if stack[-1][1] else 3]
            out.append(tuple(node))
        else:
            node = _open(text.split() or [""], text, line)
            stack.append([node, False])
            out = node[3]
    if stack:
        raise TemplateError("a block is never closed", stack[-1][0][5])
    return top

"""Text to tokens."""

import re
from typing import NamedTuple

from .errors import CalcError


class Token(NamedTuple):
    kind: str  # "number", "name", "op" or "end"
    text: str
    position: int


_TOKEN = re.compile(r"\s*(?:(?P<number>\d+\.\d*|\.\d+|\d+)|(?P<name>[A-Za-z_]\w*)|(?P<op>[-+*/%^(),;=]))")


def tokenize(text):
    """The tokens of text; the last is always an "end" token at len(text)."""
    tokens, offset = [], 0
    while text[offset:].strip():
        match = _TOKEN.match(text, offset)
        if match is None:
            blank = len(text[offset:]) - len(text[offset:].lstrip())
            raise CalcError("unexpected character", offset + blank)
        kind = match.lastgroup
        tokens.append(Token(kind, match.group(kind), match.start(kind)))
        offset = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens

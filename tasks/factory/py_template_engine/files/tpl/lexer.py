"""Cuts a template into tokens."""
import re

TAG = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.S)


class TemplateError(Exception):
    """A mistake in a template; `line` counts from 1."""

    def __init__(self, message, line):
        super().__init__(f"line {line}: {message}")
        self.line = line


def tokens(source):
    """Yields (kind, text, line) with kind "text", "value" (the inside of {{ }}) or "tag" (the inside of {% %})."""
    at, line = 0, 1
    for match in TAG.finditer(source):
        if match.start() > at:
            yield "text", source[at:match.start()], line
            line += source.count("\n", at, match.start())
        if match.group(1) is not None:
            yield "value", match.group(1).strip(), line
        else:
            yield "tag", match.group(2).strip(), line
        line += match.group(0).count("\n")
        at = match.end()
    if at < len(source):
        yield "text", source[at:], line

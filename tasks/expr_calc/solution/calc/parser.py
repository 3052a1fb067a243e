"""Tokens to a tree.

A node is a tuple: ("number", value, token), ("name", token), ("call", token, [nodes]), ("negate", token, node),
("binary", token, left, right) or ("assign", token, node). The token is the one that errors about the node point at.
"""

from .errors import CalcError
from .tokens import tokenize

MAX_DEPTH = 100


class _Parser:
    def __init__(self, text):
        self.tokens = tokenize(text)
        self.index = 0
        self.depth = 0

    @property
    def token(self):
        return self.tokens[self.index]

    def at(self, *texts):
        return self.token.kind == "op" and self.token.text in texts

    def take(self):
        token = self.token
        self.index += 1
        return token

    def fail(self):
        what = "the text ends too soon" if self.token.kind == "end" else f"unexpected {self.token.text!r}"
        raise CalcError(what, self.token.position)

    def expect(self, text):
        if not self.at(text):
            self.fail()
        return self.take()

    def program(self):
        statements = [self.statement()]
        while self.at(";"):
            self.take()
            if self.token.kind == "end":
                break
            statements.append(self.statement())
        if self.token.kind != "end":
            self.fail()
        return statements

    def statement(self):
        following = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        if self.token.kind == "name" and following.kind == "op" and following.text == "=":
            name = self.take()
            self.take()
            return ("assign", name, self.expression())
        return self.expression()

    def chain(self, operand, *operators):
        left = operand()
        while self.at(*operators):
            operator = self.take()
            left = ("binary", operator, left, operand())
        return left

    def expression(self):
        return self.chain(self.term, "+", "-")

    def term(self):
        return self.chain(self.unary, "*", "/", "%")

    def unary(self):
        # Every way to nest passes here, so this is the one place that counts the depth.
        if self.depth >= MAX_DEPTH:
            raise CalcError("nested too deeply", self.token.position)
        self.depth += 1
        if self.at("-"):
            node = ("negate", self.take(), self.unary())
        else:
            node = self.power()
        self.depth -= 1
        return node

    def power(self):
        base = self.atom()
        if self.at("^"):
            operator = self.take()
            return ("binary", operator, base, self.unary())
        return base

    def atom(self):
        if self.token.kind == "number":
            token = self.take()
            return ("number", float(token.text) if "." in token.text else int(token.text), token)
        if self.token.kind == "name":
            name = self.take()
            return ("call", name, self.arguments()) if self.at("(") else ("name", name)
        if self.at("("):
            self.take()
            node = self.expression()
            self.expect(")")
            return node
        return self.fail()

    def arguments(self):
        self.take()
        nodes = []
        if not self.at(")"):
            nodes.append(self.expression())
            while self.at(","):
                self.take()
                nodes.append(self.expression())
        self.expect(")")
        return nodes


def parse(text):
    """The list of statement nodes of a program."""
    return _Parser(text).program()

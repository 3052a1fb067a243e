from tpl.lexer import TemplateError
from tpl.parser import parse
from tpl.render import render

__all__ = ["TemplateError", "parse", "render"]

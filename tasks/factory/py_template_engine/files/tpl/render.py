"""From a tree to text."""
from tpl.parser import parse


def render(source, values):
    """Renders a template with a dictionary of values. Raises TemplateError."""
    return "".join(node[1] for node in parse(source) if node[0] == "text")

"""From a tree to text."""
import html

from tpl.lexer import TemplateError
from tpl.parser import parse


def _lookup(path, scopes):
    for scope in reversed(scopes):
        if path[0] in scope:
            value = scope[path[0]]
            break
    else:
        return None
    for name in path[1:]:
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, (list, tuple)) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _filtered(value, filters, line):
    for name in filters:
        if name == "length":
            if value is not None and not isinstance(value, (str, list, tuple, dict)):
                raise TemplateError("length of a value that has none", line)
            value = len(value or "")
        elif name == "join":
            if not isinstance(value, (list, tuple)):
                raise TemplateError("join of a value that is no list", line)
            value = ", ".join(_text(one) for one in value)
        elif name != "raw":
            value = getattr(_text(value), "strip" if name == "trim" else name)()
    return value


def _items(value, line):
    if value is None:
        return []
    if isinstance(value, dict):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return value
    raise TemplateError("for goes through lists and mappings only", line)


def _nodes(nodes, scopes, out):
    for node in nodes:
        if node[0] == "text":
            out.append(node[1])
        elif node[0] == "value":
            _, path, filters, line = node
            text = _text(_filtered(_lookup(path, scopes), filters, line))
            out.append(text if "raw" in filters else html.escape(text))
        elif node[0] == "if":
            _, path, negated, then, otherwise, _ = node
            _nodes(then if bool(_lookup(path, scopes)) != negated else otherwise, scopes, out)
        else:
            _, name, path, body, otherwise, line = node
            items = _items(_lookup(path, scopes), line)
            for index, item in enumerate(items, 1):
                loop = {"index": index, "first": index == 1, "last": index == len(items)}
                _nodes(body, scopes + [{name: item, "loop": loop}], out)
            if not items:
                _nodes(otherwise, scopes, out)


def render(source, values):
    """Renders a template with a dictionary of values. Raises TemplateError."""
    out = []
    _nodes(parse(source), [values], out)
    return "".join(out)

"""Reads each layer as a mapping from option names to (text, origin)."""
from settings.schema import SettingsError


def from_file(content, path="settings.conf"):
    """Lines `name = value`. Blanks around both are removed. A line that is empty or begins with # is skipped; # behind a value
    begins a remark when a blank stands before it. A value in double quotes is taken as it stands between them, so that it may
    hold # and blanks at its ends; behind the closing quote only a remark may follow. A line without = or with an empty name is an
    error, and so is a name given twice. The origin is "PATH:LINE".
    """
    found = {}
    for number, line in enumerate(content.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        origin = f"{path}:{number}"
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name:
            raise SettingsError(f"not a setting: {line!r} ({origin})")
        if name in found:
            raise SettingsError(f"{name}: given twice ({found[name][1]} and {origin})")
        found[name] = (_value(name, value.strip(), origin), origin)
    return found


def _value(name, text, origin):
    if text.startswith('"'):
        value, quote, rest = text[1:].partition('"')
        rest = rest.strip()
        if not quote or (rest and not rest.startswith("#")):
            raise SettingsError(f"{name}: bad quotes ({origin})")
        return value
    if text.startswith("#"):
        return ""
    for at in range(1, len(text)):
        if text[at] == "#" and text[at - 1].isspace():
            return text[:at].rstrip()
    return text


def from_environment(environment, prefix, options):
    """The variables PREFIX_NAME, the name in capitals with - as _. Others are left alone. The origin is "environment PREFIX_NAME"."""
    found = {}
    for option in options:
        variable = f"{prefix}_{option.name.upper().replace('-', '_')}"
        if variable in environment:
            found[option.name] = (environment[variable], f"environment {variable}")
    return found


def from_arguments(arguments, options):
    """`--name=value` or `--name value`; for flags also `--name` and `--no-name` alone, and never `--name value`.

    Returns (found, rest): what is left are the words that begin with no `--`, and everything behind the word `--`. When an option
    is given twice the last one counts. An unknown option and one without its value are errors. The origin is "command line".
    """
    kinds = {option.name: option.kind for option in options}
    found, rest = {}, []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            rest.extend(words)
            break
        if not word.startswith("--"):
            rest.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and name.startswith("no-") and name not in kinds and kinds.get(name[3:]) == "flag":
            name, value = name[3:], "false"
        elif name not in kinds:
            raise SettingsError(f"{name}: no such option (command line)")
        elif not equals and kinds[name] == "flag":
            value = "true"
        elif not equals:
            if not words:
                raise SettingsError(f"{name}: has no value (command line)")
            value = words.pop(0)
        found[name] = (value, "command line")
    return found, rest

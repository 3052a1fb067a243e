"""Reads each layer as a mapping from option names to (text, origin)."""
from settings.schema import SettingsError


def from_file(content, path="settings.conf"):
    """Lines `name = value`. Blanks around both are removed. A line that is empty or begins with # is skipped; # behind a value
    begins a remark when a blank stands before it. A value in double quotes is taken as it stands between them, so that it may
    hold # and blanks at its ends; behind the closing quote only a remark may follow. A line without = or with an empty name is an
    error, and so is a name given twice. The origin is "PATH:LINE".
    """
    found = {}
    for number, line in enumerate(content.split("\n")):
        line = line.split("#")[0].strip()
        if not line:
            continue
        parts = line.split("=")
        if len(parts) < 2:
            raise SettingsError("bad line")
        found[parts[0].strip()] = (parts[1].strip(), f"{path}:{number}")
    return found


def from_environment(environment, prefix, options):
    """The variables PREFIX_NAME, the name in capitals with - as _. Others are left alone. The origin is "environment PREFIX_NAME"."""
    found = {}
    for option in options:
        variable = prefix + option.name.upper()
        if environment.get(variable):
            found[option.name] = (environment[variable], "environment")
    return found


def from_arguments(arguments, options):
    """`--name=value` or `--name value`; for flags also `--name` and `--no-name` alone, and never `--name value`.

    Returns (found, rest): what is left are the words that begin with no `--`, and everything behind the word `--`. When an option
    is given twice the last one counts. An unknown option and one without its value are errors. The origin is "command line".
    """
    found, rest = {}, []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            rest.append(word)
            continue
        name, _, value = word[2:].partition("=")
        if not value:
            value = words.pop(0)
        found[name] = (value, "command line")
    return found, rest

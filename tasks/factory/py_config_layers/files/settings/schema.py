"""Options and their types."""


class SettingsError(Exception):
    """A setting that cannot be used. The text names the option and the layer it comes from."""


class Option:
    """One option: `kind` is "text", "number", "flag", "size" or "list"."""

    def __init__(self, name, kind, default=None):
        self.name = name
        self.kind = kind
        self.default = default


TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")
UNITS = {"k": 1024, "m": 1024 ** 2, "g": 1024 ** 3}


def convert(option, text, origin):
    """The value of a text.

    text: as it is. number: an int, minus sign allowed. flag: the words of TRUE and FALSE in any case. size: a number of bytes that
    is not negative, optionally with a unit k, m or g in either case (powers of 1024). list: parts between commas, blanks around
    them removed, empty parts left out. Anything else raises SettingsError, whose text holds the option's name, the origin and
    the offending text.
    """
    try:
        if option.kind == "number":
            return int(text)
        if option.kind == "flag":
            return bool(text)
        if option.kind == "size":
            return int(text)
        if option.kind == "list":
            return text.split(",")
        return text
    except ValueError:
        raise SettingsError("bad value for " + option.name)

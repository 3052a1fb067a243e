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
    def bad():
        return SettingsError(f"{option.name}: bad {option.kind} {text!r} ({origin})")

    if option.kind == "number":
        digits = text[1:] if text[:1] == "-" else text
        if not digits.isascii() or not digits.isdigit():
            raise bad()
        return int(text)
    if option.kind == "flag":
        word = text.lower()
        if word not in TRUE and word not in FALSE:
            raise bad()
        return word in TRUE
    if option.kind == "size":
        unit = UNITS.get(text[-1:].lower(), 1)
        digits = text[:-1] if text[-1:].lower() in UNITS else text
        if not digits.isascii() or not digits.isdigit():
            raise bad()
        return int(digits) * unit
    if option.kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    return text

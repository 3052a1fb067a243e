"""Puts the layers together."""
from settings import layers
from settings.schema import SettingsError, convert


class Settings:
    """What was found: `settings["name"]` is a value, `origin("name")` says where it comes from, `rest` holds the other words."""

    def __init__(self, values, origins, rest):
        self.values = values
        self.origins = origins
        self.rest = rest

    def __getitem__(self, name):
        return self.values[name]

    def origin(self, name):
        return self.origins[name]


def load(options, content="", environment=None, arguments=(), prefix="APP", path="settings.conf"):
    """Reads all layers; command line beats environment beats file beats defaults.

    A name in the file that is no option is an error. A bad value is an error only when no later layer replaces it. The origin of a
    default is "default"; defaults are used as they are, and a list that is a default is copied.
    """
    values, origins = {}, {}
    file_layer = layers.from_file(content, path)
    arguments_layer, rest = layers.from_arguments(arguments, options)
    environment_layer = layers.from_environment(environment or {}, prefix, options)
    for option in options:
        values[option.name], origins[option.name] = option.default, "default"
        for layer in (file_layer, arguments_layer, environment_layer):
            if option.name in layer:
                text, origin = layer[option.name]
                values[option.name] = convert(option, text, origin)
                origins[option.name] = origin
    return Settings(values, origins, rest)

from settings.merge import Settings, load
from settings.schema import Option, SettingsError

__all__ = ["Option", "Settings", "SettingsError", "load"]

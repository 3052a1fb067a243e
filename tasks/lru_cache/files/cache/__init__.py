"""A size-bounded cache with a time to live."""

from .memo import memoize
from .store import Store

__all__ = ["Store", "memoize"]

"""Picks versions of packages so that every constraint holds."""

from .constraint import Constraint
from .solve import Conflict, solve
from .version import Version

__all__ = ["Conflict", "Constraint", "Version", "solve"]

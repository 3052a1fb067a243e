"""Groups of rollouts from agentbox's door for trainers."""

from .door import Door, connect
from .errors import DoorError, Refused, RunFailed, Superseded, Unreachable
from .group import Group

__all__ = ["Door", "DoorError", "Group", "Refused", "RunFailed", "Superseded", "Unreachable", "connect"]
__version__ = "0.1.0"

"""What can go wrong at the door."""

from __future__ import annotations


class DoorError(Exception):
    """Everything that this package raises of its own."""


class Unreachable(DoorError):
    """The engine did not answer for as long as was waited (`patience_s`)."""


class Refused(DoorError):
    """The engine refused a request. `code` is for programs: badarg, notfound, exists, busy, ..."""

    def __init__(self, status: int, code: str, msg: str) -> None:
        super().__init__(f"{msg} ({code}, HTTP {status})")
        self.status = status
        self.code = code
        self.msg = msg


class Superseded(Refused):
    """Another trainer has connected since: this one must not go on."""


class RunFailed(DoorError):
    """The run broke; what it had closed before was given out."""

"""One cached value and the moment it stops being valid."""


class Entry:
    def __init__(self, value, now, ttl):
        """ttl is in seconds; None means for ever."""
        self.value = value
        self.expires = None if ttl is None else now + ttl

    def expired(self, now):
        """An entry is valid up to, but not at, the moment it expires."""
        return False

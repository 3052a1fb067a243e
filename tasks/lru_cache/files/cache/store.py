"""The bounded store: the least recently used entry goes first, expired ones before any other."""

from .entry import Entry


class Store:
    """A mapping of at most `capacity` keys.

    capacity: at least 1, else ValueError.
    ttl: default life of an entry in seconds, None for ever.
    clock: a function that returns the time in seconds.
    """

    def __init__(self, capacity, ttl=None, clock=None):
        self.capacity = capacity
        self.ttl = ttl
        self.clock = clock or (lambda: 0.0)
        self.entries = {}
        self.hits = 0
        self.misses = 0
        self.evictions = 0

    def get(self, key, default=None):
        """The value of key, which becomes the most recent; default if absent or expired. Counts a hit or a miss."""
        entry = self.entries.get(key)
        if entry is None:
            return default
        return entry.value

    def put(self, key, value, ttl=None):
        """Stores value as the most recent; ttl overrides the store's.

        Room is made by dropping what has expired and, only if nothing had, the least recently used entry.
        Only the latter counts as an eviction. Replacing a key never evicts another.
        """
        if len(self.entries) >= self.capacity:
            self.entries.pop(next(iter(self.entries)))
        self.entries[key] = Entry(value, self.clock(), self.ttl)

    def delete(self, key):
        """Removes key; whether a valid entry was there."""
        return self.entries.pop(key, None) is not None

    def __contains__(self, key):
        """Whether a valid entry is there; changes neither the order nor the counters."""
        return key in self.entries

    def __len__(self):
        """The number of valid entries."""
        return len(self.entries)

    def keys(self):
        """The valid keys, least recently used first."""
        return list(self.entries)

    def stats(self):
        """The counters, as a dict with hits, misses, evictions and size."""
        return {"hits": self.hits, "misses": self.misses, "evictions": self.evictions}

"""The bounded store: the least recently used entry goes first, expired ones before any other."""

from .entry import Entry


class Store:
    """A mapping of at most `capacity` keys.

    capacity: at least 1, else ValueError.
    ttl: default life of an entry in seconds, None for ever.
    clock: a function that returns the time in seconds.
    """

    def __init__(self, capacity, ttl=None, clock=None):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self.ttl = ttl
        self.clock = clock or (lambda: 0.0)
        self.entries = {}  # insertion order is the order of use: the least recent comes first
        self.hits = 0
        self.misses = 0
        self.evictions = 0

    def _valid(self, key):
        entry = self.entries.get(key)
        return None if entry is None or entry.expired(self.clock()) else entry

    def _drop_expired(self):
        now = self.clock()
        for key in [key for key, entry in self.entries.items() if entry.expired(now)]:
            del self.entries[key]

    def get(self, key, default=None):
        """The value of key, which becomes the most recent; default if absent or expired. Counts a hit or a miss."""
        entry = self._valid(key)
        if entry is None:
            self.entries.pop(key, None)
            self.misses += 1
            return default
        self.entries[key] = self.entries.pop(key)
        self.hits += 1
        return entry.value

    def put(self, key, value, ttl=None):
        """Stores value as the most recent; ttl overrides the store's.

        Room is made by dropping what has expired and, only if nothing had, the least recently used entry.
        Only the latter counts as an eviction. Replacing a key never evicts another.
        """
        self.entries.pop(key, None)
        if len(self.entries) >= self.capacity:
            self._drop_expired()
        if len(self.entries) >= self.capacity:
            del self.entries[next(iter(self.entries))]
            self.evictions += 1
        self.entries[key] = Entry(value, self.clock(), self.ttl if ttl is None else ttl)

    def delete(self, key):
        """Removes key; whether a valid entry was there."""
        valid = self._valid(key) is not None
        self.entries.pop(key, None)
        return valid

    def __contains__(self, key):
        """Whether a valid entry is there; changes neither the order nor the counters."""
        return self._valid(key) is not None

    def __len__(self):
        """The number of valid entries."""
        return len(self.keys())

    def keys(self):
        """The valid keys, least recently used first."""
        now = self.clock()
        return [key for key, entry in self.entries.items() if not entry.expired(now)]

    def stats(self):
        """The counters, as a dict with hits, misses, evictions and size."""
        return {"hits": self.hits, "misses": self.misses, "evictions": self.evictions, "size": len(self)}

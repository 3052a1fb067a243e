"""A dictionary from bytes to bytes that survives its process."""
import os

from kv import codec


class Store:
    """A key-value store in one file.

    The file is made when it is missing. When its end is torn, the good records before the tear are used and the rest is cut off
    before anything new is written.
    """

    def __init__(self, path):
        self.path = path
        self.data = {}

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        return default

    def set(self, key, value):
        """Stores a value. It is in the file when this returns. A value that is stored already is not written again."""
        self.data[key] = value

    def delete(self, key):
        """Removes a key and says whether it was there. Removing what is not there writes nothing."""
        return False

    def keys(self):
        """All keys, sorted."""
        return []

    def compact(self):
        """Rewrites the file so that it holds one "set" record for each key, in the order of the keys, and nothing else.

        The new file is written as PATH.new beside the old one and then renamed over it, so that there is a whole file at
        any moment. The store can be used as before afterwards. Returns how many records were dropped.
        """
        return 0

    def close(self):
        """Closes the file. May be called twice."""

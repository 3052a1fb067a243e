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
        self.records = 0
        if os.path.exists(path):
            with open(path, "rb") as file:
                content = file.read()
            records, end = codec.decode_all(content)
            for op, key, value in records:
                self._apply(op, key, value)
            self.records = len(records)
            if end < len(content):
                with open(path, "r+b") as file:
                    file.truncate(end)
        self.file = open(path, "ab")

    def _apply(self, op, key, value):
        if op == codec.SET:
            self.data[key] = value
        else:
            self.data.pop(key, None)

    def _write(self, op, key, value=b""):
        self.file.write(codec.encode(op, key, value))
        self.file.flush()
        os.fsync(self.file.fileno())
        self._apply(op, key, value)
        self.records += 1

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        return self.data.get(key, default)

    def set(self, key, value):
        """Stores a value. It is in the file when this returns. A value that is stored already is not written again."""
        if self.data.get(key) != value:
            self._write(codec.SET, key, value)

    def delete(self, key):
        """Removes a key and says whether it was there. Removing what is not there writes nothing."""
        if key not in self.data:
            return False
        self._write(codec.DELETE, key)
        return True

    def keys(self):
        """All keys, sorted."""
        return sorted(self.data)

    def compact(self):
        """Rewrites the file so that it holds one "set" record for each key, in the order of the keys, and nothing else.

        The new file is written as PATH.new beside the old one and then renamed over it, so that there is a whole file at
        any moment. The store can be used as before afterwards. Returns how many records were dropped.
        """
        other = self.path + ".new"
        with open(other, "wb") as file:
            for key in self.keys():
                file.write(codec.encode(codec.SET, key, self.data[key]))
            file.flush()
            os.fsync(file.fileno())
        self.file.close()
        os.replace(other, self.path)
        self.file = open(self.path, "ab")
        dropped = self.records - len(self.data)
        self.records = len(self.data)
        return dropped

    def close(self):
        """Closes the file. May be called twice."""
        self.file.close()

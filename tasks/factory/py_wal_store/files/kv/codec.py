"""Records of the log file; see FORMAT.md."""
import struct
import zlib

SET = 1
DELETE = 2
MAX_KEY = 65535
MAX_VALUE = 16777216

HEADER = struct.Struct("<IBHI")


def encode(op, key, value=b""):
    """The bytes of one record.

    Raises ValueError for an unknown op, a key or value of a length that is not allowed, and a delete with a value.
    """
    return b""


def decode_all(data):
    """Reads records from the beginning of `data` until the first that is damaged or incomplete.

    Returns (records, end): a list of (op, key, value) and the offset behind the last good record.
    """
    return [], 0

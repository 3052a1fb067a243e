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
    if op not in (SET, DELETE):
        raise ValueError("unknown op")
    if not 1 <= len(key) <= MAX_KEY:
        raise ValueError("key length")
    if len(value) > MAX_VALUE or (op == DELETE and value):
        raise ValueError("value length")
    body = HEADER.pack(0, op, len(key), len(value))[4:] + key + value
    return struct.pack("<I", zlib.crc32(body)) + body


def decode_all(data):
    """Reads records from the beginning of `data` until the first that is damaged or incomplete.

    Returns (records, end): a list of (op, key, value) and the offset behind the last good record.
    """
    records = []
    at = 0
    while at + HEADER.size <= len(data):
        crc, op, key_len, value_len = HEADER.unpack_from(data, at)
        end = at + HEADER.size + key_len + value_len
        if op not in (SET, DELETE) or key_len == 0 or value_len > MAX_VALUE or end > len(data):
            break
        if op == DELETE and value_len:
            break
        if zlib.crc32(data[at + 4:end]) != crc:
            break
        start = at + HEADER.size
        records.append((op, bytes(data[start:start + key_len]), bytes(data[start + key_len:end])))
        at = end
    return records, at

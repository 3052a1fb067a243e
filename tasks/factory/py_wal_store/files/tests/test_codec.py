import zlib

import pytest

from kv import codec


def test_layout_of_a_set():
    data = codec.encode(codec.SET, b"ab", b"xyz")
    assert data[4:] == b"\x01" + b"\x02\x00" + b"\x03\x00\x00\x00" + b"ab" + b"xyz"
    assert data[:4] == zlib.crc32(data[4:]).to_bytes(4, "little")


def test_layout_of_a_delete():
    assert codec.encode(codec.DELETE, b"k")[4:] == b"\x02\x01\x00\x00\x00\x00\x00k"


@pytest.mark.parametrize("op, key, value", [
    (0, b"k", b""), (3, b"k", b""), (codec.SET, b"", b"v"), (codec.SET, b"k" * 65536, b""), (codec.DELETE, b"k", b"v"),
])
def test_refuses(op, key, value):
    with pytest.raises(ValueError):
        codec.encode(op, key, value)


def test_longest_value():
    value = bytes(codec.MAX_VALUE)
    assert len(codec.encode(codec.SET, b"k", value)) == codec.MAX_VALUE + 12
    with pytest.raises(ValueError):
        codec.encode(codec.SET, b"k", value + b"x")


def test_longest_key():
    key = b"k" * 65535
    assert codec.decode_all(codec.encode(codec.SET, key, b"")) == ([(codec.SET, key, b"")], 65535 + 11)


def test_round_trip():
    data = codec.encode(codec.SET, b"a", b"1") + codec.encode(codec.DELETE, b"a") + codec.encode(codec.SET, b"\x00", b"")
    records, end = codec.decode_all(data)
    assert records == [(codec.SET, b"a", b"1"), (codec.DELETE, b"a", b""), (codec.SET, b"\x00", b"")]
    assert end == len(data)


def test_torn_anywhere():
    first, second = codec.encode(codec.SET, b"a", b"1"), codec.encode(codec.SET, b"bb", b"22")
    for cut in range(len(second)):
        assert codec.decode_all(first + second[:cut]) == ([(codec.SET, b"a", b"1")], len(first))


def test_damage_anywhere_stops_reading():
    first, second = codec.encode(codec.SET, b"a", b"1"), codec.encode(codec.SET, b"b", b"2")
    third = codec.encode(codec.SET, b"c", b"3")
    for at in range(len(second)):
        bad = bytearray(second)
        bad[at] ^= 0x55
        assert codec.decode_all(first + bytes(bad) + third) == ([(codec.SET, b"a", b"1")], len(first))


def seal(body):
    return zlib.crc32(body).to_bytes(4, "little") + body


def test_rules_hold_even_when_the_crc_is_right():
    assert codec.decode_all(seal(b"\x03\x01\x00\x00\x00\x00\x00k")) == ([], 0)
    assert codec.decode_all(seal(b"\x01\x00\x00\x01\x00\x00\x00v")) == ([], 0)
    assert codec.decode_all(seal(b"\x02\x01\x00\x01\x00\x00\x00kv")) == ([], 0)

import os

from kv import Store, codec


def records_of(path):
    with open(path, "rb") as file:
        return codec.decode_all(file.read())


def test_survives_reopening(tmp_path):
    path = str(tmp_path / "log")
    store = Store(path)
    store.set(b"b", b"2")
    store.set(b"a", b"1")
    store.set(b"b", b"3")
    assert store.delete(b"a") is True
    store.close()
    store.close()
    again = Store(path)
    assert again.get(b"b") == b"3"
    assert again.get(b"a") is None
    assert again.get(b"a", b"-") == b"-"
    assert again.keys() == [b"b"]


def test_is_in_the_file_when_set_returns(tmp_path):
    path = str(tmp_path / "log")
    store = Store(path)
    store.set(b"k", b"v")
    assert records_of(path)[0] == [(codec.SET, b"k", b"v")]
    store.delete(b"k")
    assert records_of(path)[0] == [(codec.SET, b"k", b"v"), (codec.DELETE, b"k", b"")]


def test_writes_nothing_needlessly(tmp_path):
    path = str(tmp_path / "log")
    store = Store(path)
    store.set(b"k", b"")
    size = os.path.getsize(path)
    assert size == 12
    store.set(b"k", b"")
    assert store.delete(b"other") is False
    assert os.path.getsize(path) == size


def test_goes_on_after_a_torn_end(tmp_path):
    path = str(tmp_path / "log")
    whole = codec.encode(codec.SET, b"a", b"1")
    torn = codec.encode(codec.SET, b"b", b"a longer value")
    for cut in range(1, len(torn)):
        with open(path, "wb") as file:
            file.write(whole + torn[:cut])
        store = Store(path)
        assert store.keys() == [b"a"]
        store.set(b"c", b"3")
        store.close()
        again = Store(path)
        assert (again.get(b"a"), again.get(b"b"), again.get(b"c")) == (b"1", None, b"3")
        again.close()
        assert records_of(path)[1] == os.path.getsize(path)


def test_a_refused_record_changes_nothing(tmp_path):
    path = str(tmp_path / "log")
    store = Store(path)
    try:
        store.set(b"", b"v")
        assert False, "an empty key was taken"
    except ValueError:
        pass
    assert store.keys() == []
    assert os.path.getsize(path) == 0


def test_compact(tmp_path):
    path = str(tmp_path / "log")
    store = Store(path)
    for n in range(5):
        store.set(b"x", b"%d" % n)
    store.set(b"b", b"2")
    store.set(b"a", b"1")
    store.delete(b"b")
    assert store.compact() == 6
    assert records_of(path)[0] == [(codec.SET, b"a", b"1"), (codec.SET, b"x", b"4")]
    assert os.listdir(tmp_path) == ["log"]
    store.set(b"z", b"9")
    assert store.compact() == 0
    store.close()
    again = Store(path)
    assert again.keys() == [b"a", b"x", b"z"]
    again.set(b"a", b"2")
    assert again.compact() == 1

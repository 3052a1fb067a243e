import pytest

from cache import Store


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_put_and_get():
    store = Store(2)
    store.put("a", 1)
    assert store.get("a") == 1
    assert store.get("b", "none") == "none"
    assert store.stats() == {"hits": 1, "misses": 1, "evictions": 0, "size": 1}


def test_reading_makes_recent():
    store = Store(2)
    store.put("a", 1)
    store.put("b", 2)
    store.get("a")
    store.put("c", 3)
    assert store.keys() == ["a", "c"]
    assert store.stats()["evictions"] == 1


def test_expiry():
    clock = Clock()
    store = Store(4, ttl=10, clock=clock)
    store.put("a", 1)
    clock.now += 9.5
    assert store.get("a") == 1
    clock.now += 0.5
    assert store.get("a") is None
    assert "a" not in store
    assert len(store) == 0


def test_replacing_does_not_evict():
    store = Store(2)
    store.put("a", 1)
    store.put("b", 2)
    store.put("a", 3)
    assert store.keys() == ["b", "a"]
    assert store.get("a") == 3
    assert store.stats()["evictions"] == 0


def test_capacity_is_checked():
    with pytest.raises(ValueError):
        Store(0)

import pytest

from cache import Store, memoize


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_own_ttl_overrides():
    clock = Clock()
    store = Store(4, ttl=10, clock=clock)
    store.put("short", 1, ttl=1)
    store.put("long", 2, ttl=100)
    store.put("usual", 3)
    clock.now = 1
    assert store.keys() == ["long", "usual"]
    clock.now = 10
    assert store.keys() == ["long"]


def test_a_ttl_of_zero_is_never_served():
    store = Store(4, clock=Clock())
    store.put("a", 1, ttl=0)
    assert "a" not in store
    assert store.get("a") is None
    assert store.stats()["misses"] == 1


def test_expired_go_before_the_least_recent():
    clock = Clock()
    store = Store(2, clock=clock)
    store.put("old", 1)
    store.put("brief", 2, ttl=1)
    clock.now = 5
    store.put("new", 3)
    assert store.keys() == ["old", "new"]
    assert store.stats()["evictions"] == 0


def test_contains_changes_nothing():
    store = Store(2)
    store.put("a", 1)
    store.put("b", 2)
    assert "a" in store
    store.put("c", 3)
    assert store.keys() == ["b", "c"]
    assert store.stats() == {"hits": 0, "misses": 0, "evictions": 1, "size": 2}


def test_delete():
    clock = Clock()
    store = Store(2, ttl=1, clock=clock)
    store.put("a", 1)
    assert store.delete("a") is True
    assert store.delete("a") is False
    store.put("b", 1)
    clock.now = 1
    assert store.delete("b") is False


def test_a_stored_none_is_a_hit():
    store = Store(2)
    store.put("a", None)
    assert store.get("a", "absent") is None
    assert store.stats()["hits"] == 1


def test_memo_types_and_order():
    calls = []

    @memoize()
    def show(*args, **kwargs):
        calls.append(1)
        return repr((args, sorted(kwargs.items())))

    assert show(1) != show(1.0)
    assert show(True) == "((True,), [])"
    show(a=1, b=2)
    show(b=2, a=1)
    show(("a", 1))
    assert len(calls) == 5


def test_memo_remembers_none_but_no_exception():
    calls = []

    @memoize()
    def nothing(n):
        calls.append(n)
        if n < 0:
            raise ValueError(n)

    assert nothing(1) is None
    assert nothing(1) is None
    for _ in range(2):
        with pytest.raises(ValueError):
            nothing(-1)
    assert calls == [1, -1, -1]
    assert nothing.__name__ == "nothing"


def test_memo_expires():
    clock = Clock()
    calls = []

    @memoize(ttl=2, clock=clock)
    def tick():
        calls.append(clock.now)
        return clock.now

    tick()
    clock.now = 1
    assert tick() == 0
    clock.now = 2
    assert tick() == 2
    assert tick.cache.stats()["size"] == 1

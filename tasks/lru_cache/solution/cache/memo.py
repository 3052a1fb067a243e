"""A decorator that remembers results in a Store."""

import functools

from .store import Store

_ABSENT = object()


def _typed(value):
    return type(value), value


def memoize(capacity=128, ttl=None, clock=None):
    """Remembers a function's results by its arguments.

    Positional and keyword arguments both count; keyword order does not. Values of different types are different
    (1, 1.0 and True). A result of None is remembered like any other, an exception never is.
    The store is reachable as `function.cache`.
    """

    def wrap(function):
        store = Store(capacity, ttl, clock)

        @functools.wraps(function)
        def call(*args, **kwargs):
            key = (
                tuple(_typed(arg) for arg in args),
                tuple((name, *_typed(kwargs[name])) for name in sorted(kwargs)),
            )
            value = store.get(key, _ABSENT)
            if value is _ABSENT:
                value = function(*args, **kwargs)
                store.put(key, value)
            return value

        call.cache = store
        return call

    return wrap

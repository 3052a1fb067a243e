from cache import memoize


def test_calls_once():
    calls = []

    @memoize()
    def double(n):
        calls.append(n)
        return 2 * n

    assert [double(3), double(3), double(4)] == [6, 6, 8]
    assert calls == [3, 4]


def test_keywords_count():
    @memoize()
    def join(a, sep="-"):
        return sep.join(a)

    assert join("ab") == "a-b"
    assert join("ab", sep="+") == "a+b"

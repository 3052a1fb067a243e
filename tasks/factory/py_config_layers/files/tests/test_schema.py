import pytest

from settings import Option, SettingsError
from settings.schema import convert


@pytest.mark.parametrize("kind, text, value", [
    ("text", " as it is ", " as it is "), ("number", "-12", -12), ("number", "007", 7), ("flag", "Yes", True), ("flag", "on", True),
    ("flag", "1", True), ("flag", "FALSE", False), ("flag", "off", False), ("flag", "0", False), ("flag", "no", False),
    ("size", "0", 0), ("size", "512", 512), ("size", "10k", 10240), ("size", "2M", 2097152), ("size", "1g", 1073741824),
    ("list", "a, b,,c ,", ["a", "b", "c"]), ("list", "", []),
])
def test_converts(kind, text, value):
    got = convert(Option("x", kind), text, "here")
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize("kind, text", [
    ("number", ""), ("number", "1.5"), ("number", "-"), ("number", "1_000"), ("number", " 1"), ("flag", ""), ("flag", "2"),
    ("flag", "falsch"), ("size", "k"), ("size", "-1"), ("size", "1kb"), ("size", ""), ("size", "1 k"),
])
def test_refuses(kind, text):
    with pytest.raises(SettingsError) as caught:
        convert(Option("cache-size", kind), text, "environment APP_CACHE_SIZE")
    said = str(caught.value)
    assert "cache-size" in said and "environment APP_CACHE_SIZE" in said and text in said

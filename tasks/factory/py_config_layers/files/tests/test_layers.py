import pytest

from settings import Option, SettingsError
from settings.layers import from_arguments, from_environment, from_file

OPTIONS = [Option("name", "text"), Option("debug", "flag"), Option("cache-size", "size"), Option("no-color", "flag")]


def texts(layer):
    return {name: text for name, (text, _) in layer.items()}


def test_file():
    content = '# first\nname = a=b=c\n\n  debug=yes # remark\nurl = http://example.org/#top\nempty =\ntitle = " a # b " # c\nnone = # only'
    assert texts(from_file(content)) == {
        "name": "a=b=c", "debug": "yes", "url": "http://example.org/#top", "empty": "", "title": " a # b ", "none": "",
    }


def test_file_origin():
    assert from_file("\na = 1\n\nb = 2", "x.conf") == {"a": ("1", "x.conf:2"), "b": ("2", "x.conf:4")}


@pytest.mark.parametrize("content, line", [
    ("a = 1\nnothing", 2), ("= 1", 1), ('a = "open', 1), ('a = "x" y', 1), ("a = 1\nb = 2\na = 3", 3),
])
def test_file_mistakes(content, line):
    with pytest.raises(SettingsError, match=f"s.conf:{line}"):
        from_file(content, "s.conf")


def test_environment():
    environment = {"APP_NAME": "", "APP_CACHE_SIZE": "1k", "APP_OTHER": "x", "DEBUG": "1", "APPDEBUG": "1"}
    assert from_environment(environment, "APP", OPTIONS) == {
        "name": ("", "environment APP_NAME"), "cache-size": ("1k", "environment APP_CACHE_SIZE"),
    }


def test_arguments():
    found, rest = from_arguments(["a", "--name", "--x", "--cache-size=", "-v", "--debug", "b", "--", "--name", "--"], OPTIONS)
    assert texts(found) == {"name": "--x", "cache-size": "", "debug": "true"}
    assert rest == ["a", "-v", "b", "--name", "--"]
    assert found["debug"][1] == "command line"


def test_flags_on_the_command_line():
    assert texts(from_arguments(["--debug", "--no-debug"], OPTIONS)[0]) == {"debug": "false"}
    assert texts(from_arguments(["--debug=off"], OPTIONS)[0]) == {"debug": "off"}
    assert texts(from_arguments(["--no-color"], OPTIONS)[0]) == {"no-color": "true"}
    assert texts(from_arguments(["--no-no-color"], OPTIONS)[0]) == {"no-color": "false"}
    assert texts(from_arguments(["--name=a", "--name=b"], OPTIONS)[0]) == {"name": "b"}


@pytest.mark.parametrize("arguments", [["--nope"], ["--nope=1"], ["--name"], ["--no-name"], ["--no-debug=1"]])
def test_argument_mistakes(arguments):
    with pytest.raises(SettingsError, match="command line"):
        from_arguments(arguments, OPTIONS)

import pytest

from settings import Option, SettingsError, load

OPTIONS = [Option("name", "text", "anon"), Option("port", "number", 80), Option("debug", "flag", False), Option("hosts", "list", ["a"])]


def test_defaults():
    settings = load(OPTIONS)
    assert (settings["name"], settings["port"], settings["debug"], settings["hosts"]) == ("anon", 80, False, ["a"])
    assert settings.origin("port") == "default"
    settings["hosts"].append("b")
    assert load(OPTIONS)["hosts"] == ["a"]


def test_precedence():
    content, environment, arguments = "port = 1\nname = f\ndebug = on", {"APP_PORT": "2", "APP_NAME": "e"}, ["--port=3", "x"]
    settings = load(OPTIONS, content, environment, arguments)
    assert (settings["port"], settings["name"], settings["debug"]) == (3, "e", True)
    assert [settings.origin(name) for name in ("port", "name", "debug", "hosts")] == [
        "command line", "environment APP_NAME", "settings.conf:3", "default"]
    assert settings.rest == ["x"]


def test_false_in_the_environment_beats_true_in_the_file():
    assert load(OPTIONS, "debug = true", {"APP_DEBUG": "false"})["debug"] is False


def test_unknown_names():
    with pytest.raises(SettingsError, match="prot.*my.conf:1"):
        load(OPTIONS, "prot = 1", path="my.conf")
    assert load(OPTIONS, environment={"APP_PROT": "1"})["port"] == 80


def test_a_bad_value_that_is_replaced_does_no_harm():
    assert load(OPTIONS, "port = x", {"APP_PORT": "5"})["port"] == 5
    with pytest.raises(SettingsError, match="port.*settings.conf:1"):
        load(OPTIONS, "port = x")

import pytest

from resolver import Conflict, Constraint, Version, solve


def test_versions_are_ordered():
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.2.0", "1.10.0"]
    assert [str(v) for v in sorted(map(Version, reversed(texts)))] == texts


@pytest.mark.parametrize(
    "text, yes, no",
    [
        ("^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"]),
        ("~1.2.3", ["1.2.3", "1.2.9"], ["1.3.0"]),
        (">=1.0.0 <2.0.0", ["1.0.0", "1.99.0"], ["0.9.0", "2.0.0"]),
        ("1.0.0 || ^3.0.0", ["1.0.0", "3.1.0"], ["1.0.1", "2.0.0"]),
        ("*", ["0.0.1", "9.0.0"], ["1.0.0-rc.1"]),
    ],
)
def test_constraints(text, yes, no):
    for version in yes:
        assert Constraint(text).allows(Version(version)), version
    for version in no:
        assert not Constraint(text).allows(Version(version)), version


def test_newest_that_fits():
    index = {"a": {"1.0.0": {}, "1.9.0": {}, "1.10.0": {}, "2.0.0": {}}}
    assert solve(index, {"a": "^1.0.0"}) == {"a": "1.10.0"}


def test_steps_back():
    index = {
        "app": {"2.0.0": {"lib": "^2.0.0"}, "1.0.0": {"lib": "^1.0.0"}},
        "plugin": {"1.0.0": {"lib": "^1.0.0"}},
        "lib": {"1.0.0": {}, "1.5.0": {}, "2.0.0": {}},
    }
    assert solve(index, {"app": "*", "plugin": "*"}) == {"app": "1.0.0", "lib": "1.5.0", "plugin": "1.0.0"}


def test_conflict():
    index = {"a": {"1.0.0": {"c": "^1.0.0"}}, "b": {"1.0.0": {"c": "^2.0.0"}}, "c": {"1.0.0": {}, "2.0.0": {}}}
    with pytest.raises(Conflict) as info:
        solve(index, {"a": "*", "b": "*"})
    assert "c" in info.value.packages

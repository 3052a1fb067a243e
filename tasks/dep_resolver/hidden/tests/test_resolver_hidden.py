import pytest

from resolver import Conflict, Constraint, Version, solve


@pytest.mark.parametrize(
    "text", ["1", "1.2", "01.2.3", "1.2.3-", "1.2.3-a..b", "1.2.3-01", "1.2.3-a_b", "1.2.x", "", "1.2.3.4", " 1.2.3", "-1.2.3"]
)
def test_malformed_versions(text):
    with pytest.raises(ValueError):
        Version(text)


@pytest.mark.parametrize("text", ["", "||", "1.0.0 ||", ">", "^1", "=>1.0.0", "**", "> 1.0.0"])
def test_malformed_constraints(text):
    with pytest.raises(ValueError):
        Constraint(text)


@pytest.mark.parametrize(
    "text, version, allowed",
    [
        ("^0.2.3", "0.2.9", True),
        ("^0.2.3", "0.3.0", False),
        ("^0.0.3", "0.0.3", True),
        ("^0.0.3", "0.0.4", False),
        ("^0.0.0", "0.0.1", False),
        ("~0.2.3", "0.3.0", False),
        ("!=1.0.0", "1.0.0", False),
        ("=1.0.0", "1.0.0", True),
        ("<=1.0.0", "1.0.0", True),
        (">1.0.0", "1.0.0", False),
        ("^1.2.3-rc.1", "1.2.3-rc.2", True),
        ("^1.2.3-rc.1", "1.2.4-rc.2", False),
        ("^1.2.3-rc.1", "1.2.3", True),
        ("^1.0.0", "2.0.0-rc.1", False),
        ("^1.2.3-rc.1 || 2.0.0", "2.0.0-rc.1", False),
        ("* >=1.0.0-a", "1.0.0-b", True),
    ],
)
def test_terms(text, version, allowed):
    assert Constraint(text).allows(Version(version)) is allowed


def test_equal_versions_hash_alike():
    assert len({Version("1.0.0-a"), Version("1.0.0-a"), Version("1.0.0")}) == 2


def test_a_circle():
    index = {"a": {"1.0.0": {"b": "*"}}, "b": {"1.0.0": {"a": "^1.0.0"}}}
    assert solve(index, {"a": "*"}) == {"a": "1.0.0", "b": "1.0.0"}


def test_a_circle_that_excludes_itself():
    index = {"a": {"2.0.0": {"b": "*"}, "1.0.0": {}}, "b": {"1.0.0": {"a": "^1.0.0"}}}
    assert solve(index, {"a": "*"}) == {"a": "1.0.0"}


def test_unknown_packages():
    index = {"a": {"2.0.0": {"ghost": "*"}, "1.0.0": {}}}
    assert solve(index, {"a": "*"}) == {"a": "1.0.0"}
    with pytest.raises(Conflict):
        solve(index, {"ghost": "*"})


def test_only_what_is_needed_in_sorted_order():
    index = {"z": {"1.0.0": {"m": "*"}}, "m": {"1.0.0": {}}, "a": {"1.0.0": {}}, "unused": {"1.0.0": {}}}
    assert list(solve(index, {"z": "*", "a": "*"})) == ["a", "m", "z"]


def test_a_left_over_of_a_failed_try_is_not_kept():
    index = {
        "a": {"2.0.0": {"extra": "*", "lib": "^9.0.0"}, "1.0.0": {"lib": "*"}},
        "extra": {"1.0.0": {}},
        "lib": {"1.0.0": {}},
    }
    assert solve(index, {"a": "*"}) == {"a": "1.0.0", "lib": "1.0.0"}


def test_lock_file():
    index = {"a": {"1.0.0": {}, "1.1.0": {}}, "b": {"1.0.0": {"a": ">=1.1.0"}, "0.9.0": {}}}
    assert solve(index, {"a": "*"}, prefer={"a": "1.0.0"}) == {"a": "1.0.0"}
    assert solve(index, {"a": "^1.1.0"}, prefer={"a": "1.0.0"}) == {"a": "1.1.0"}
    assert solve(index, {"a": "*", "b": "1.0.0"}, prefer={"a": "1.0.0"}) == {"a": "1.1.0", "b": "1.0.0"}
    assert solve(index, {"a": "*"}, prefer={"a": "7.0.0"}) == {"a": "1.1.0"}


def test_prereleases_only_on_request():
    index = {"a": {"1.0.0": {}, "2.0.0-rc.1": {}}}
    assert solve(index, {"a": "*"}) == {"a": "1.0.0"}
    assert solve(index, {"a": ">=2.0.0-rc.0"}) == {"a": "2.0.0-rc.1"}


def test_deep_backtracking():
    """The last package rules out all but the oldest version of the first."""
    index = {f"p{n}": {f"1.{m}.0": {f"p{n + 1}": f"=1.{m}.0"} for m in range(6)} for n in range(12)}
    index["p12"] = {"1.0.0": {}}
    assert solve(index, {"p0": "*"})["p0"] == "1.0.0"


def test_nothing_wanted():
    assert solve({"a": {"1.0.0": {}}}, {}) == {}


def test_a_long_chain():
    index = {f"p{n}": {"1.0.0": {f"p{n + 1}": "*"} if n < 2999 else {}} for n in range(3000)}
    assert len(solve(index, {"p0": "*"})) == 3000

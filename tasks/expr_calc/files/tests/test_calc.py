import pytest

from calc import CalcError, Calculator, calculate


@pytest.mark.parametrize(
    "text, value",
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 - 2 - 1", 4),
        ("7 / 2", 3.5),
        ("-7 % 3", 2),
        ("2^3^2", 512),
        ("-2^2", -4),
        ("2^-1", 0.5),
        (".5 + 1.", 1.5),
        ("max(1, 2 * 3, 4) - min(5)", 1),
        ("round(2.5)", 2),
        ("sqrt(16)", 4.0),
    ],
)
def test_values(text, value):
    assert calculate(text) == value


def test_names_and_statements():
    assert calculate("a = 3; b = a * x; b + 1;", x=2) == 7


def test_variables_stay():
    calc = Calculator()
    assert calc.run("n = 41") == 41
    assert calc.run("n + 1") == 42


@pytest.mark.parametrize(
    "text, position",
    [("1 +", 3), ("1 / 0", 2), ("2 * q", 4), ("1 $ 2", 2), ("(1", 2), ("1 2", 2), ("nope(1)", 0), ("", 0)],
)
def test_errors_say_where(text, position):
    with pytest.raises(CalcError) as info:
        calculate(text)
    assert info.value.position == position

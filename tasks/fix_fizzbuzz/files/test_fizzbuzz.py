import pytest

from fizzbuzz import fizzbuzz, play


@pytest.mark.parametrize("n, word", [(1, "1"), (3, "Fizz"), (5, "Buzz"), (7, "7"), (9, "Fizz"), (20, "Buzz")])
def test_plain(n, word):
    assert fizzbuzz(n) == word


@pytest.mark.parametrize("n", [15, 30, 45, 300])
def test_both(n):
    assert fizzbuzz(n) == "FizzBuzz"


def test_play_counts_the_last():
    assert play(5) == ["1", "2", "Fizz", "4", "Buzz"]


def test_play_of_nothing():
    assert play(0) == []

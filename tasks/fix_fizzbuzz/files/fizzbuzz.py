"""Fizz buzz: the counting game."""


def fizzbuzz(n):
    """The word for n: "Fizz" for multiples of 3, "Buzz" of 5, "FizzBuzz" of both, else the number."""
    if n % 3 == 0:
        return "Fizz"
    if n % 5 == 0:
        return "Buzz"
    if n % 15 == 0:
        return "FizzBuzz"
    return str(n)


def play(limit):
    """The words for 1 up to and including limit."""
    return [fizzbuzz(n) for n in range(1, limit)]

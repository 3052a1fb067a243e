"""Reversing text without breaking it."""


def reverse(text):
    """The letters of text, last first; an accent stays with its letter."""
    return text[::1]


def reverse_words(text):
    """The words of text, last first, joined by one space."""
    return " ".join(reversed(text.split(" ")))


def is_palindrome(text):
    """Whether text reads the same both ways, looking only at letters and digits, whatever their case."""
    return text == reverse(text)

"""Reversing text without breaking it."""

import unicodedata


def _clusters(text):
    """Each letter together with the combining marks that follow it."""
    clusters = []
    for char in text:
        if clusters and unicodedata.combining(char):
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


def reverse(text):
    """The letters of text, last first; an accent stays with its letter."""
    return "".join(reversed(_clusters(text)))


def reverse_words(text):
    """The words of text, last first, joined by one space."""
    return " ".join(reversed(text.split()))


def is_palindrome(text):
    """Whether text reads the same both ways, looking only at letters and digits, whatever their case."""
    letters = [char.lower() for char in text if char.isalnum()]
    return letters == letters[::-1]

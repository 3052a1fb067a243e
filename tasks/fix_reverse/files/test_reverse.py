from reverse import is_palindrome, reverse, reverse_words


def test_reverse():
    assert reverse("abc") == "cba"
    assert reverse("") == ""


def test_accents_stay_with_their_letter():
    assert reverse("ne\u0301z") == "ze\u0301n"
    assert reverse("a\u0308\u0304b") == "ba\u0308\u0304"


def test_words():
    assert reverse_words("one two three") == "three two one"


def test_words_with_odd_spaces():
    assert reverse_words("  one \t two\n") == "two one"
    assert reverse_words("   ") == ""


def test_palindromes():
    assert is_palindrome("A man, a plan, a canal: Panama!")
    assert is_palindrome("")
    assert is_palindrome("12 21")
    assert not is_palindrome("ab")

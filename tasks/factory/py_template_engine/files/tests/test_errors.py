import pytest

from tpl import TemplateError, parse, render


@pytest.mark.parametrize("source, line", [
    ("{{ }}", 1), ("\n{{ a b }}", 2), ("{{ .a }}", 1), ("{{ a. }}", 1), ("{{ a | nope }}", 1), ("a\nb\n{{ a | }}", 3),
    ("{{ 'text' }}", 1), ("{{ a() }}", 1), ("{% %}", 1), ("\n\n{% while x %}", 3), ("{% if %}", 1), ("{% if a b %}", 1),
    ("{% if not a b %}{% end %}", 1), ("{% for x of y %}{% end %}", 1), ("{% for a.b in y %}{% end %}", 1),
    ("{% for x in y z %}{% end %}", 1), ("x\n{% end %}", 2), ("{% else %}", 1),
    ("{% if a %}\n{% else %}\n{% else %}{% end %}", 3), ("\n{% if a %}\n\n", 2), ("{% if a %}\n{% for x in y %}\n{% end %}\n", 1),
    ("{% if a %}\n{% for x in y %}\n\n", 2), ("{{ a\n }}\n{% nope %}", 3),
])
def test_mistakes_have_their_line(source, line):
    with pytest.raises(TemplateError) as caught:
        parse(source)
    assert caught.value.line == line


@pytest.mark.parametrize("source, line", [
    ("\n{% for x in n %}{% end %}", 2), ("{% for x in s %}{% end %}", 1), ("\n\n{{ n | length }}", 3), ("{{ s | join }}", 1),
])
def test_mistakes_when_rendered(source, line):
    with pytest.raises(TemplateError) as caught:
        render(source, {"n": 3, "s": "text"})
    assert caught.value.line == line


def test_a_branch_that_is_not_taken_is_not_rendered():
    assert render("{% if a %}{{ n | length }}{% end %}", {"n": 3}) == ""


def test_tree():
    assert parse("a{{ b.c | trim }}\n{% if not x %}y{% else %}{% for i in z %}{% end %}{% end %}") == [
        ("text", "a"), ("value", ["b", "c"], ["trim"], 1), ("text", "\n"),
        ("if", ["x"], True, [("text", "y")], [("for", "i", ["z"], [], [], 2)], 2),
    ]

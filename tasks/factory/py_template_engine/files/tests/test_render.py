import pytest

from tpl import render


@pytest.mark.parametrize("source, expected", [
    ("plain { text } % only", "plain { text } % only"),
    ("Hi {{ name }}!", "Hi Ada!"),
    ("{{name}}{{ user.city }}", "AdaParis"),
    ("{{ rows.1 }}-{{ rows.7 }}-{{ rows.x }}", "b--"),
    ("[{{ missing }}{{ user.missing.deeper }}{{ name.upper }}]", "[]"),
    ("{{ yes }} {{ no }} {{ n }}", "true false 3"),
    ("{{ html }}", "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;"),
    ("{{ html | raw }}", "<a href=\"x\">'&"),
    ("{{ html | raw | upper }}", "<A HREF=\"X\">'&"),
    ("{{ padded | trim | upper }}.", "X."),
    ("{{ name|lower }} {{ name | length }} {{ rows | length }} {{ user | length }} {{ missing | length }}", "ada 3 2 1 0"),
    ("{{ mixed | join }}", "1, true, , &lt;"),
    ("{{ yes | upper }}{{ missing | upper }}", "TRUE"),
])
def test_values(source, expected):
    values = {"name": "Ada", "user": {"city": "Paris"}, "rows": ["a", "b"], "yes": True, "no": False, "n": 3,
              "html": "<a href=\"x\">'&", "padded": "  x ", "mixed": [1, True, None, "<"]}
    assert render(source, values) == expected


@pytest.mark.parametrize("source, expected", [
    ("{% if a %}A{% end %}", "A"), ("{% if b %}B{% end %}", ""), ("{% if b %}B{% else %}-{% end %}", "-"),
    ("{% if not b %}N{% else %}-{% end %}", "N"), ("{% if not a %}N{% else %}-{% end %}", "-"),
    ("{% if nothing.at.all %}x{% else %}y{% end %}", "y"),
    ("{% if a %}{% if b %}1{% else %}2{% end %}3{% else %}4{% end %}5", "235"),
    ("{% if b %}1{% else %}{% if a %}2{% end %}{% end %}", "2"),
])
def test_if(source, expected):
    assert render(source, {"a": [0], "b": []}) == expected


def test_for():
    source = "{% for x in rows %}{{ loop.index }}{{ x.n }}{% if not loop.last %},{% end %}{% end %}"
    assert render(source, {"rows": ({"n": "a"}, {"n": "b"}, {"n": "c"})}) == "1a,2b,3c"
    assert render("{% for x in rows %}{% if loop.first %}^{% end %}{{ x }}{% end %}", {"rows": [1, 2]}) == "^12"


def test_for_over_a_mapping_and_nothing():
    assert render("{% for k in m %}{{ k }} {% end %}", {"m": {"b": 1, "a": 2}}) == "a b "
    assert render("{% for k in m %}x{% else %}empty{% end %}", {"m": None}) == "empty"
    assert render("{% for k in m %}x{% else %}empty{% end %}", {"m": [1]}) == "x"


def test_scopes():
    source = "{{ x }}{% for x in a %}{% for y in b %}{{ x }}{{ y }}{{ loop.index }} {% end %}{{ loop.index }};{% end %}{{ x }}{{ y }}"
    assert render(source, {"x": "o", "a": [1, 2], "b": ["p", "q"]}) == "o1p1 1q2 1;2p1 2q2 2;o"


def test_values_are_not_templates():
    assert render("{{ a }}", {"a": "{{ b }}", "b": "x"}) == "{{ b }}"


def test_no_attributes():
    class Thing:
        secret = "s"

        def __str__(self):
            return "thing"
    assert render("{{ t }}{{ t.secret }}{{ t.__class__ }}{{ d.keys }}", {"t": Thing(), "d": {}}) == "thing"

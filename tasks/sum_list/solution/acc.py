def total(xs):
    """The sum of the numbers in xs; nested lists and tuples count too, None counts as 0."""
    result = 0
    for x in xs:
        if isinstance(x, (list, tuple)):
            result += total(x)
        elif x is not None:
            result += x
    return result

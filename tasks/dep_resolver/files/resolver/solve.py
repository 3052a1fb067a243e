"""The search."""

from .constraint import Constraint
from .version import Version


class Conflict(Exception):
    """No choice of versions works. `packages` is the set of names that took part in the last dead end."""

    def __init__(self, message, packages):
        super().__init__(message)
        self.packages = set(packages)


def solve(index, wanted, prefer=None):
    """Picks a version for every package that is needed.

    index: {name: {version text: {dependency name: constraint text}}}.
    wanted: {name: constraint text}, what the user asks for.
    prefer: {name: version text}, a lock file: used where it is possible, without making a solution impossible.

    Returns {name: version text} for the wanted packages and what they need, nothing else, keys sorted.
    Packages are decided in the order in which they become needed: the wanted ones by name, then each decided package's
    dependencies by name. For each the preferred version is tried first, then the newest to the oldest; the first complete choice in this
    order is the answer. Packages may depend on each other in a circle. An unknown package makes the version that needs it
    unusable. Raises Conflict when nothing works.
    """
    chosen, queue = {}, sorted(wanted.items())
    while queue:
        name, constraint = queue.pop(0)
        if name in chosen:
            continue
        versions = [text for text in index[name] if Constraint(constraint).allows(Version(text))]
        if not versions:
            raise Conflict(f"no version of {name} fits {constraint}", [name])
        chosen[name] = max(versions)
        queue += sorted(index[name][chosen[name]].items())
    return chosen

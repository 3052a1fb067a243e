"""The search."""

from .constraint import Constraint
from .version import Version


class Conflict(Exception):
    """No choice of versions works. `packages` is the set of names that took part in the last dead end."""

    def __init__(self, message, packages):
        super().__init__(message)
        self.packages = set(packages)


class _Step:
    """One decision: the package, its untried versions, and what to undo when it fails."""

    def __init__(self, name, candidates):
        self.name = name
        self.candidates = candidates
        self.added = []  # (dependency, constraint) pairs that the current version brought


class _Search:
    def __init__(self, index, wanted, prefer):
        self.index = index
        self.prefer = prefer
        self.chosen = {}
        self.limits = {}  # name -> constraints in force
        self.order = []  # packages in the order in which they became needed
        self.last = ("nothing fits", [])
        for name in sorted(wanted):
            self._limit(name, wanted[name])

    def _limit(self, name, constraint):
        if name not in self.limits:
            self.limits[name] = []
            self.order.append(name)
        self.limits[name].append(Constraint(constraint))

    def _candidates(self, name):
        limits = self.limits[name]
        versions = [version for version in map(Version, self.index.get(name, ())) if all(c.allows(version) for c in limits)]
        if not versions:
            self.last = (f"no version of {name} fits {', '.join(map(str, limits))}", [name])
        versions.sort(key=lambda version: (version.text == self.prefer.get(name), version), reverse=True)
        return iter(versions)

    def _undo(self, step):
        self.chosen.pop(step.name, None)
        for name, _ in reversed(step.added):
            self.limits[name].pop()
            if not self.limits[name]:
                del self.limits[name]
                self.order.remove(name)
        step.added = []

    def _try(self, step):
        """Takes the next version of the step that does not contradict what is chosen; whether there was one."""
        for version in step.candidates:
            self._undo(step)
            self.chosen[step.name] = version
            for name, constraint in sorted(self.index[step.name][version.text].items()):
                self._limit(name, constraint)
                step.added.append((name, constraint))
            clash = [name for name, text in step.added if name in self.chosen and not Constraint(text).allows(self.chosen[name])]
            if not clash:
                return True
            self.last = (f"{step.name} {version} contradicts {', '.join(clash)}", [step.name, *clash])
        self._undo(step)
        return False

    def run(self):
        steps = []
        while len(steps) < len(self.order):
            name = self.order[len(steps)]
            steps.append(_Step(name, self._candidates(name)))
            while not self._try(steps[-1]):
                steps.pop()
                if not steps:
                    raise Conflict(*self.last)
        return {name: self.chosen[name].text for name in sorted(self.chosen)}


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
    return _Search(index, wanted, prefer or {}).run()

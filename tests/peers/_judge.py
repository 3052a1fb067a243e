"""What the judges of exports share: reading lines, TAP, the rule of token rows, and code of packages without what they import."""
import ast
import importlib.util
import json
import pathlib
import sys
import types

results = {"passed": 0, "failed": 0, "skipped": 0}


def lines(folder, name):
    return [json.loads(line) for line in (pathlib.Path(folder) / name).read_text(encoding="utf-8").split("\n") if line]


def check(name, fn):
    try:
        fn()
    except Exception as problem:  # every failure is a line of the report
        results["failed"] += 1
        print(f"not ok - {name}\n# {type(problem).__name__}: {str(problem)[:2000]}")
    else:
        results["passed"] += 1
        print(f"ok - {name}")


def end():
    print(", ".join(f"{count} {name}" for name, count in results.items()))
    sys.exit(results["failed"] > 0)


def definitions(package, file, names, given):
    """Executes the named classes and functions of a package's file, as they are written there, with `given` as their globals: the
    file itself imports a training stack."""
    root = pathlib.Path(importlib.util.find_spec(package).origin).parent
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    wanted = [node for node in tree.body if getattr(node, "name", None) in names]
    assert len(wanted) == len(names), f"{file} of {package} has no {set(names) - {node.name for node in wanted}}"
    future = ast.ImportFrom(module="__future__", names=[ast.alias(name="annotations")], level=0)
    module = ast.fix_missing_locations(ast.Module(body=[future, *wanted], type_ignores=[]))
    pieces = types.ModuleType(f"{package}.pieces{len(sys.modules)}")
    sys.modules[pieces.__name__] = pieces
    space = vars(pieces)
    space.update({name: value for name, value in given.items() if not name.startswith("__")})
    exec(compile(module, str(root / file), "exec"), space)
    return [space[name] for name in names]


def without_tops(package, *below):
    """Makes the package, and those named below it, ones whose own top modules are not run: they start a training stack. Modules in
    them can then be imported."""
    spec = importlib.util.find_spec(package)
    root = pathlib.Path(spec.origin).parent
    for name in (package, *(f"{package}.{one}" for one in below)):
        bare = types.ModuleType(name)
        bare.__path__, bare.__spec__ = [str(root.joinpath(*name.split(".")[1:]))], spec
        sys.modules[name] = bare


def line_up(folder, rows, whole):
    """Every trained id of the rows (trajectory, ids, mask, log-probs) stands under exactly the prefix that it was sampled with, and has the
    log-prob that the server gave; none is trained twice; with `whole`, none is missing."""
    calls = {entry["id"]: entry["calls"] for entry in lines(folder, "calls.jsonl")}
    seen = set()
    for trajectory, ids, mask, logprobs in rows:
        assert len(ids) == len(mask) == len(logprobs), (trajectory, len(ids), len(mask), len(logprobs))
        assert any(mask) and mask[-1], f"{trajectory}: the row does not end with a sampled id"
        for at, (token, trained, logprob) in enumerate(zip(ids, mask, logprobs)):
            if not trained:
                assert logprob == 0.0, f"{trajectory}: a log-prob on an id that was not sampled"
                continue
            i, j = token // 1000, token % 1000
            call = calls[trajectory][i - 1]
            assert ids[:at] == call["prompt"] + call["out"][:j - 1], f"{trajectory}: call {i} under another prefix"
            assert logprob == call["lp"][j - 1], f"{trajectory}: the log-prob of another id"
            assert (trajectory, token) not in seen, f"{trajectory}: {token} is trained twice"
            seen.add((trajectory, token))
    if whole:
        scored = {entry["id"]: entry for entry in lines(folder, "calls.jsonl") if entry["scored"]}
        wanted = {(id, token) for id, entry in scored.items() for call in entry["calls"] for token in call["out"]}
        assert not wanted - seen, f"{len(wanted - seen)} of {len(wanted)} sampled ids are missing"
    return len(seen)

--- verifiers/pytest_run.lua: the Python program that runs pytest for the verifier, inside the sandbox.
---
--- It is given to `python3 -I -c`, so nothing of it lies on disk; its settings and the key of this run come over stdin,
--- which is closed before anything of the workspace is imported. docs/security.md has the reasoning line by line.
---
---  - `-I`: no user site, no PYTHON* variables, no folder on the path that anybody else can write.
---  - pytest, its plugins and what they import are loaded before the workspace is on the path, so a planted pytest.py or
---    json.py comes too late; entry points are read then as well.
---  - The configuration is the task's or none; byte code and caches are neither read from nor written to the workspace.
---  - The report is written by this program after pytest has returned, signed with the key: leaving early writes none.
---  - Functions of pytest that decide over pass and fail are compared with what they were before the tests.
return {
  SOURCE = [==[
import sys, os, json, hmac, hashlib, importlib, types, builtins

def run(cfg):
    workspace = cfg["workspace"]
    try:
        import pytest, _pytest
    except ImportError as e:
        return {"error": "pytest is not installed in the sandbox (%s)" % e}
    from _pytest.config import default_plugins
    for name in default_plugins:
        try:
            importlib.import_module("_pytest." + name)
        except ImportError:
            pass
    plugins = load_plugins(cfg["blocked"])
    frozen = freeze()

    state = {"ids": [], "outcomes": {}, "errors": [], "items": {}, "strange": []}
    assertion = builtins.AssertionError

    def worst(have, new):
        order = ("passed", "xfailed", "skipped", "failed")
        return new if have is None or order.index(new) > order.index(have) else have

    class Recorder:
        def pytest_collection_finish(self, session):
            for item in session.items:
                state["ids"].append(item.nodeid)
                if cfg["mode"] == "collect":
                    state["items"][item.nodeid] = any(True for n in ("skip", "skipif", "xfail")
                                                      for _ in item.iter_markers(n))

        def pytest_collectreport(self, report):
            if report.failed:
                state["errors"].append(report.nodeid)

        def pytest_runtest_logreport(self, report):
            outcome = report.outcome
            where = None
            if outcome == "skipped":
                if hasattr(report, "wasxfail"):
                    outcome = "xfailed"
                elif isinstance(report.longrepr, tuple):
                    where = str(report.longrepr[0])
            if outcome == "passed" and report.when != "call":
                return
            if builtins.AssertionError is not assertion:
                state["strange"].append("builtins.AssertionError")
            have = state["outcomes"].get(report.nodeid)
            new = worst(have[0] if have else None, outcome)
            state["outcomes"][report.nodeid] = [new, where]

        def pytest_sessionfinish(self, session):
            pm = session.config.pluginmanager
            allowed = set(os.path.realpath(os.path.join(workspace, p)) for p in cfg["trusted"])
            for plugin in pm.get_plugins():
                file = getattr(plugin, "__file__", None)
                if file is None:
                    module = sys.modules.get(type(plugin).__module__)
                    file = getattr(module, "__file__", None)
                if file and cfg["mode"] == "run":
                    real = os.path.realpath(file)
                    if real.startswith(os.path.realpath(workspace) + os.sep) and real not in allowed:
                        state["strange"].append("plugin " + os.path.relpath(real, workspace))

    # From here on byte code is looked for in an empty folder: none that the agent left beside a source is used.
    sys.pycache_prefix = cfg["scratch"] + "/pyc"
    os.chdir(workspace)
    front = [workspace] if cfg["cwd_on_path"] else []
    front += [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    sys.path[0:0] = front
    sys.argv = ["pytest"]
    args = list(cfg["args"])
    if cfg["mode"] == "collect":
        args += ["--collect-only", "-q"]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    code = pytest.main(args, plugins=plugins + [Recorder()])
    os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
    state["exit"] = int(code)
    state["strange"] += changed(frozen)
    state["strange"] = sorted(set(state["strange"]))
    if cfg["mode"] == "collect":
        state["names"] = selected(names_of_failed(workspace, state["errors"], cfg["test_files"]), cfg["args"])
        state["skips"] = [f for f in cfg["test_files"] if can_skip(os.path.join(workspace, f))]
    return state


def load_plugins(blocked):
    from importlib import metadata
    found = metadata.entry_points()
    found = found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", ())
    plugins, seen = [], set()
    blocked = set(a[3:] for a in blocked)
    for entry in found:
        if entry.name in blocked or entry.value in seen:
            continue
        seen.add(entry.value)
        try:
            plugins.append(entry.load())
        except Exception as e:
            sys.stderr.write("plugin %s: %s\n" % (entry.name, e))
    return plugins


WATCHED = ("_pytest.runner", "_pytest.python", "_pytest.reports", "_pytest.main", "_pytest.unittest",
           "_pytest.outcomes", "_pytest.nodes", "_pytest.fixtures", "_pytest.skipping", "_pytest.terminal",
           "_pytest.config", "_pytest._code.code", "_pytest.python_api", "pluggy._hooks", "pluggy._manager",
           "pluggy._callers", "pluggy._result", "unittest.case")


def functions():
    for name in WATCHED:
        module = sys.modules.get(name)
        if module is None:
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType):
                yield "%s.%s" % (name, key), value
            elif isinstance(value, type) and value.__module__ == name:
                for attr, inner in list(vars(value).items()):
                    inner = getattr(inner, "__func__", getattr(inner, "fget", inner))
                    if isinstance(inner, types.FunctionType):
                        yield "%s.%s.%s" % (name, key, attr), inner
    for key in ("AssertionError", "isinstance", "issubclass", "any", "all", "len", "getattr", "__import__", "exec",
                "compile", "Exception", "BaseException"):
        yield "builtins." + key, getattr(builtins, key)


def freeze():
    return {name: (value, getattr(value, "__code__", None)) for name, value in functions()}


def changed(frozen):
    now = dict(functions())
    out = []
    for name, (value, code) in frozen.items():
        have = now.get(name)
        if have is not value or getattr(have, "__code__", None) is not code:
            out.append(name)
    return out


def names_of_failed(workspace, errors, test_files):
    import ast
    names = []
    for file in test_files:
        if not any(e == file or e.startswith(file + "::") or e == "" or file.startswith(e + "/") for e in errors):
            continue
        try:
            with open(os.path.join(workspace, file), "rb") as f:
                tree = ast.parse(f.read())
        except (OSError, SyntaxError, ValueError):
            continue
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)

        def skips(node):
            return any("skip" in ast.dump(d) or "xfail" in ast.dump(d) for d in node.decorator_list)

        for node in tree.body:
            if isinstance(node, kinds) and node.name.startswith("test") and not skips(node):
                names.append("%s::%s" % (file, node.name))
            elif isinstance(node, ast.ClassDef) and not skips(node):
                bases = [getattr(b, "attr", getattr(b, "id", "")) for b in node.bases]
                if node.name.startswith("Test") or any("TestCase" in b for b in bases):
                    for inner in node.body:
                        if isinstance(inner, kinds) and inner.name.startswith("test") and not skips(inner):
                            names.append("%s::%s::%s" % (file, node.name, inner.name))
    return names


def selected(names, args):
    # Which of the names the arguments select can be told for ids; expressions are pytest's own business.
    if any(a in ("-k", "-m", "--deselect") or a.startswith(("-k=", "--deselect=")) for a in args):
        return []
    ids = [a for a in args if "::" in a and not a.startswith("-")]
    if not ids:
        return names
    return [n for n in names if any(n == i or n.startswith(i + "::") or i.startswith(n + "[") for i in ids)]


def can_skip(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError:
        return False
    return any(word in text for word in ("pytest.skip", "importorskip", "skipTest", "SkipTest", "unittest.skip"))


def main():
    # The key lives in this frame only: it is in no file, argument, variable of the environment or module.
    cfg = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    key = bytes.fromhex(cfg.pop("key"))
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.dont_write_bytecode = True
    pid, dumps, sign, write = os.getpid(), json.dumps, hmac.new, open
    report = run(cfg)
    if os.getpid() != pid:  # a child forked by the tests got this far
        os._exit(71)
    text = dumps(report).encode("utf-8")
    signed = sign(key, text, hashlib.sha256).hexdigest().encode("ascii") + b"\n" + text
    os.makedirs(cfg["scratch"], exist_ok=True)
    part = cfg["scratch"] + "/report.part"
    with write(part, "wb") as f:
        f.write(signed)
    os.rename(part, cfg["scratch"] + "/report")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(report.get("exit", 70))


main()
]==],
}

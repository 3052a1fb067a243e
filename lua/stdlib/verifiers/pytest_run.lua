--- verifiers/pytest_run.lua: the Python program that runs pytest for the verifier, inside the sandbox.
---
--- It is given to `python3 -I -c`, so nothing of it lies on disk; its settings and the key of this run come over
--- stdin, which is closed before anything of the workspace is imported. docs/security.md has the reasoning line by
--- line.
---
---  - `-I`: no user site, no PYTHON* variables, no folder on the path that anybody else can write.
---  - pytest, its plugins and what they import are loaded before the workspace is on the path, so a planted pytest.py or
---    json.py comes too late; entry points are read then as well.
---  - The configuration is the task's or none; byte code and caches are neither read from nor written to the workspace.
---  - The report is written by this program after pytest has returned, signed with the key: leaving early writes none. It
---    is put in words and signed by C functions that were looked up before, and `__main__` is an empty module.
---  - What decides over pass and fail (pytest, pluggy, unittest, built-ins) is compared with what it was before the tests.
---  - A test counts when its function has the code that the task's file gives: a stand-in put into sys.modules, by an
---    import hook or by rewriting the file does not. What an untouched sandbox has that looks like this is `usual`.
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
    before = contents(workspace, cfg["trusted"])
    codes, names, bound = set(), set(), {}

    state = {"ids": [], "outcomes": {}, "errors": [], "items": {}, "strange": [], "replaced": []}
    assertion = builtins.AssertionError

    def worst(have, new):
        order = ("passed", "xfailed", "skipped", "failed")
        return new if have is None or order.index(new) > order.index(have) else have

    class Recorder:
        @pytest.hookimpl(tryfirst=True)
        def pytest_load_initial_conftests(self, early_config):
            for file, source in before.items():
                codes.update(codes_of(file, source, early_config))
            names.update(code.co_name for code in codes)

        def pytest_collection_finish(self, session):
            for item in session.items:
                if item.nodeid.split("::")[0] in before and ".py::" in item.nodeid:
                    function = genuine(item, codes, names)
                    if function is None:
                        state["replaced"].append(item.nodeid)
                    else:
                        bound[item.nodeid] = (function, function.__code__)
                state["ids"].append(item.nodeid)
                if cfg["mode"] == "collect":
                    state["items"][item.nodeid] = any(True for n in ("skip", "skipif", "xfail")
                                                      for _ in item.iter_markers(n))

        def pytest_runtest_teardown(self, item):
            function, code = bound.get(item.nodeid, (run, run.__code__))
            if function.__code__ is not code:
                state["replaced"].append(item.nodeid)

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
                file, kind = getattr(plugin, "__file__", None), type(plugin)
                if file is None:
                    module = sys.modules.get(kind.__module__)
                    file = getattr(module, "__file__", None)
                    if is_watched(kind.__module__) and getattr(module, kind.__name__, None) is not kind:
                        state["strange"].append("plugin " + kind.__name__)
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
    state["strange"] = changed(frozen) + state["strange"]
    for kind in ("strange", "replaced"):
        state[kind] = [name for name in state[kind] if name not in cfg["usual"]]
    for test in state["replaced"]:
        state["outcomes"][test] = ["replaced", None]
    state["rewritten"] = [f for f, source in contents(workspace, cfg["trusted"]).items() if before.get(f) != source]
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


def contents(workspace, files):
    out = {}
    for file in files:
        try:
            with open(os.path.join(workspace, file), "rb") as f:
                out[file] = f.read()
        except OSError:
            out[file] = b""
    return out


def codes_of(file, source, config):
    # Every code object that a test file gives: as it stands, and with pytest's own assertions.
    import ast
    from _pytest.assertion import rewrite
    if not file.endswith(".py"):
        return
    for rewritten in (False, True):
        try:
            tree = ast.parse(source, filename=file)
            if rewritten:
                rewrite.rewrite_asserts(tree, source, file, config)
            todo = [compile(tree, file, "exec", dont_inherit=True)]
        except (SyntaxError, ValueError, RecursionError):
            continue
        while todo:
            code = todo.pop()
            yield code
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def genuine(item, codes, names):
    # The function of a test, or the one that its decorators hide, if the task's files give its code.
    name = getattr(item, "originalname", None) or item.name
    todo, seen = [getattr(item, "function", None)], []
    while todo and len(seen) < 100:
        part = todo.pop(0)
        if part is None or any(part is s for s in seen):
            continue
        seen.append(part)
        code = getattr(part, "__code__", None)
        if type(code) is types.CodeType and code in codes and (code.co_name == name or name not in names):
            return part
        todo += [getattr(part, attr, None) for attr in ("__wrapped__", "__func__", "func")]
        for cell in getattr(part, "__closure__", None) or ():
            try:
                todo.append(cell.cell_contents)
            except ValueError:
                pass
    return None


def is_watched(module):
    return module.split(".")[0] in ("_pytest", "pluggy") or module == "unittest.case"


# Built-ins that programs replace for good reasons, and that decide over nothing.
LOOSE = ("_", "print", "input", "open", "help", "exit", "quit", "breakpoint", "copyright", "credits", "license")
QUIET = ("__doc__", "__annotations__", "__annotations_cache__", "__annotate_func__", "__abstractmethods__", "_abc_impl",
         "__parameters__")


def parts():
    # name, what holds it, key, value
    for name, module in list(sys.modules.items()):
        if module is None or not is_watched(name):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType):
                yield "%s.%s" % (name, key), value
            elif isinstance(value, type) and value.__module__ == name:
                yield "%s.%s" % (name, key), value
                for attr, inner in list(vars(value).items()):
                    if attr not in QUIET:
                        yield "%s.%s.%s" % (name, key, attr), inner


DESCRIPTORS = (types.FunctionType, classmethod, staticmethod, property, type)


def code_in(value):
    value = getattr(value, "__func__", getattr(value, "fget", value))
    return getattr(value, "__code__", None)


def freeze():
    now = {name: (value, code_in(value)) for name, value in parts()}
    return now, {name for name, (value, _) in now.items() if isinstance(value, type)}, dict(vars(builtins)), vars(builtins)


def changed(frozen):
    before, classes, loose, builtin = frozen
    out = []
    for key, value in loose.items():
        if builtin.get(key) is not value and key not in LOOSE:
            out.append("builtins." + key)
    if out:  # nothing below can be relied on
        return out
    now = dict(parts())
    for name, (value, code) in before.items():
        have = now.get(name)
        if isinstance(value, DESCRIPTORS) and (have is not value or code_in(have) is not code):
            out.append(name)
    for name, value in now.items():
        if name not in before and name.rpartition(".")[0] in classes and hasattr(type(value), "__get__"):
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


def encoder():
    # json's own C function, which nothing in Python can be put in front of.
    from json import encoder as e
    try:
        encode = e.c_make_encoder(None, str, e.c_encode_basestring_ascii, None, ":", ",", False, False, True)
        encode({"a": ["b", None, True, 1]}, 0)
        return lambda value: "".join(encode(value, 0))
    except (TypeError, ValueError):
        return json.dumps


def signer():
    try:
        from _hashlib import hmac_digest
        return lambda key, text: hmac_digest(key, text, "sha256").hex()
    except ImportError:
        return lambda key, text: hmac.new(key, text, hashlib.sha256).hexdigest()


def main():
    # The key lives in this frame only: it is in no file, argument, variable of the environment or module.
    cfg = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    key = bytes.fromhex(cfg.pop("key"))
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.dont_write_bytecode = True
    sys.modules["__main__"] = types.ModuleType("__main__")
    getpid, write, rename, leave = os.getpid, open, os.rename, os._exit
    pid, encode, sign = getpid(), encoder(), signer()
    report = run(cfg)
    if getpid() != pid:  # a child forked by the tests got this far
        leave(71)
    text = encode(report).encode("utf-8")
    signed = sign(key, text).encode("ascii") + b"\n" + text
    part = cfg["scratch"] + "/report.part"
    with write(part, "wb") as f:
        f.write(signed)
    rename(part, cfg["scratch"] + "/report")
    sys.stdout.flush()
    sys.stderr.flush()
    leave(report.get("exit", 70))


main()
]==],
}
